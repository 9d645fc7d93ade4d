#include "gyre/build/model_identity.h"

#include <fmt/format.h>

#include "gyre/core/error.h"

namespace gyre {
nlohmann::ordered_json model_identity(const Config& config) {
  const nlohmann::ordered_json all = to_json(config);
  nlohmann::ordered_json identity;
  for (const auto& [key, value] : all.at("model").items()) {
    if (ModelSettings::is_identity(key)) identity[key] = value;
  }
  const auto own = all.find("model." + config.model.kind);
  if (own != all.end()) identity.update(*own);
  return identity;
}

void check_model_identity(const nlohmann::ordered_json& saved, const Config& config) {
  const nlohmann::ordered_json wanted = model_identity(config);
  Config usual;
  usual.model.kind = config.model.kind;
  const nlohmann::ordered_json defaults = model_identity(usual);
  for (const auto& [key, value] : wanted.items()) {
    // A key that came later was at its default.
    const nlohmann::ordered_json& then = saved.contains(key) ? saved.at(key) : defaults.at(key);
    if (then == value) continue;
    throw InputError(
        fmt::format("[model] {} is {}, but the checkpoint was made with {}; resume with the same model, or "
                    "start another run with --out",
                    key, value.dump(), then.dump()));
  }
}

}  // namespace gyre
