// Qwen2: a Llama whose queries, keys and values have biases.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 32}, settings);
  if (settings.own.get<LlamaSettings>().head_size != 0)
    config.fail("'head_dim' is not hidden_size / heads, as it is in a Qwen2 model");
  settings.own.get<LlamaSettings>().qkv_bias = true;
}

std::string misfit(const ModelSettings& settings) {
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  if (!own.qkv_bias) return "a Qwen2 has biases of queries, keys and values";
  if (own.qk_norm) return "a Qwen2 has no norms of queries and keys";
  return head_size(own, settings.width, settings.heads) * settings.heads == settings.width
             ? ""
             : "a Qwen2's heads are as wide together as the model";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config.erase("head_dim");  // always width / heads
  config["use_sliding_window"] = false;
}

}  // namespace

Family qwen2_family() {
  return {.model_type = "qwen2",
          .architectures = {"Qwen2ForCausalLM"},
          .kind = "llama",
          .prefix = "model.",
          .tied_unless_said = false,
          .tensors = llama_tensors(),
          .buffers = {".rotary_emb.inv_freq"},
          .read = read,
          .misfit = misfit,
          .write = write};
}

}  // namespace gyre
