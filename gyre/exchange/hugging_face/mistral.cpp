// Mistral: a Llama. Its first version limits the attention of all layers to a window.
#include "gyre/exchange/hugging_face/llama_parts.h"

namespace gyre {
namespace {

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 8}, settings);
  fit_into_window(config, settings);
}

std::string misfit(const ModelSettings& settings) {
  return misfit_of_heads(settings, "a Mistral", /*qkv_bias=*/false, /*qk_norm=*/false);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  if (!keeps_window(settings, config)) config["sliding_window"] = nullptr;
}

}  // namespace

Family mistral_family() {
  return llama_family_of("mistral", "MistralForCausalLM", read, misfit, write);
}

}  // namespace gyre
