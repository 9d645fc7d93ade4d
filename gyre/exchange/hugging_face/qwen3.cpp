// Qwen3: a Llama whose queries and keys are normalised, head by head, and whose heads have a size of their own.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 32, .head_size = 128}, settings);
  if (has_windows(config)) fit_into_window(config, settings);
  config.only("attention_bias", false);
  settings.own.get<LlamaSettings>().qk_norm = true;
}

std::string misfit(const ModelSettings& settings) {
  return misfit_of_heads(settings, "a Qwen3", /*qkv_bias=*/false, /*qk_norm=*/true);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config["attention_bias"] = false;
  write_windows(settings, config);
}

}  // namespace

Family qwen3_family() {
  return llama_family_of("qwen3", "Qwen3ForCausalLM", read, misfit, write);
}

}  // namespace gyre
