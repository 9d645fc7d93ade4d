#include "gyre/build/model_identity.h"

#include <fmt/format.h>

#include "gyre/core/error.h"

namespace gyre {

nlohmann::ordered_json model_identity(const Config& config) {
  const auto& model = config.model;
  return {{"kind", model.kind},
          {"layers", model.layers},
          {"width", model.width},
          {"heads", model.heads},
          {"context", model.context},
          {"vocabulary", model.vocabulary},
          {"mlp_width", model.mlp_width},
          {"activation", model.activation},
          {"bias", model.bias},
          {"norm", model.norm},
          {"sentence_order", model.sentence_order}};
}

void check_model_identity(const nlohmann::ordered_json& saved, const Config& config) {
  const nlohmann::ordered_json wanted = model_identity(config);
  for (const auto& [key, value] : wanted.items()) {
    if (saved.contains(key) && saved.at(key) == value) continue;
    throw InputError(
        fmt::format("[model] {} is {}, but the checkpoint was made with {}; resume with the same model, or "
                    "start another run with --out",
                    key, value.dump(), saved.contains(key) ? saved.at(key).dump() : "none"));
  }
}

}  // namespace gyre
