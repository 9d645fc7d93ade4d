// Mistral: a Llama. Its first version limits attention to a window.
#include <fmt/format.h>

#include "gyre/exchange/hugging_face/llama_parts.h"

namespace gyre {
namespace {

constexpr int64_t kUsualWindow = 4096;  // of a config.json without the field; null: none

void read(ConfigFields& config, ModelSettings& settings) {
  read_llama_parts(config, {.key_value_heads = 8}, settings);
  const int64_t window = config.whole("sliding_window", kUsualWindow, settings.context);
  if (window < settings.context) {
    config.fail(
        fmt::format("'sliding_window' is {}{}, less than max_position_embeddings, {}, and gyre has no windows; if "
                    "your sequences are no longer than the window, give that as max_position_embeddings",
                    window, config.has("sliding_window") ? "" : ", being missing", settings.context));
  }
}

std::string misfit(const ModelSettings& settings) {
  return misfit_of_heads(settings, "a Mistral", /*qkv_bias=*/false, /*qk_norm=*/false);
}

void write(const ModelSettings& settings, nlohmann::ordered_json& config) {
  write_llama_parts(settings, config);
  config["sliding_window"] = nullptr;
}

}  // namespace

Family mistral_family() {
  return llama_family_of("mistral", "MistralForCausalLM", read, misfit, write);
}

}  // namespace gyre
