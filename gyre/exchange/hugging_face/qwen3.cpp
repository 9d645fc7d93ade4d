// Qwen3: a Llama whose queries and keys are normalised, head by head, and whose heads have a size of their own.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 32, .head_size = 128}, settings);
  config.only("attention_bias", false);
  settings.own.get<LlamaSettings>().qk_norm = true;
}

std::string misfit(const ModelSettings& settings) {
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  if (!own.qk_norm) return "a Qwen3 has norms of queries and keys";
  return own.qkv_bias ? "a Qwen3 has no biases of queries, keys and values" : "";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config["attention_bias"] = false;
  config["use_sliding_window"] = false;
}

}  // namespace

Family qwen3_family() {
  return {.model_type = "qwen3",
          .architectures = {"Qwen3ForCausalLM"},
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
