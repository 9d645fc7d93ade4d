// Qwen2: a Llama whose queries, keys and values have biases.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 32}, settings);
  if (has_windows(config)) fit_into_window(config, settings);
  if (settings.own.get<LlamaSettings>().head_size != 0)
    config.fail("'head_dim' is not hidden_size / heads, as it is in a Qwen2 model");
  settings.own.get<LlamaSettings>().qkv_bias = true;
}

std::string misfit(const ModelSettings& settings) {
  std::string heads = misfit_of_heads(settings, "a Qwen2", /*qkv_bias=*/true, /*qk_norm=*/false);
  if (!heads.empty()) return heads;
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  return head_size(own, settings.width, settings.heads) * settings.heads == settings.width
             ? ""
             : "a Qwen2's heads are as wide together as the model";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config.erase("head_dim");  // always width / heads
  write_windows(settings, config);
}

}  // namespace

Family qwen2_family() {
  return llama_family_of("qwen2", "Qwen2ForCausalLM", read, misfit, write);
}

}  // namespace gyre
