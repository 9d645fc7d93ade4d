// Llama: no biases.
#include "gyre/exchange/hugging_face/llama_parts.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {}, settings);
  config.only("attention_bias", false);
  config.only("use_sliding_window", false);
  if (has_windows(config)) config.fail("'layer_types' has sliding windows, which a Llama does not have");
}

std::string misfit(const ModelSettings& settings) {
  return misfit_of_heads(settings, "a Llama", /*qkv_bias=*/false, /*qk_norm=*/false);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config["attention_bias"] = false;
  config["mlp_bias"] = false;
}

}  // namespace

Family llama_family() {
  return llama_family_of("llama", "LlamaForCausalLM", read, misfit, write);
}

}  // namespace gyre
