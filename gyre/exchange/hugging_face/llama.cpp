// Llama: no biases.
#include "gyre/exchange/hugging_face/llama_parts.h"
#include "gyre/model/settings/llama_settings.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {}, settings);
  config.only("attention_bias", false);
}

std::string misfit(const ModelSettings& settings) {
  const auto own = settings.own.of_kind("llama").get<LlamaSettings>();
  if (own.qkv_bias) return "a Llama has no biases of queries, keys and values";
  return own.qk_norm ? "a Llama has no norms of queries and keys" : "";
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config["attention_bias"] = false;
  config["mlp_bias"] = false;
}

}  // namespace

Family llama_family() {
  return {.model_type = "llama",
          .architectures = {"LlamaForCausalLM"},
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
