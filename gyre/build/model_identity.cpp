#include "gyre/build/model_identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"

namespace gyre {

nlohmann::ordered_json model_identity(const Config& config) {
  const nlohmann::ordered_json tables = to_json(config);
  nlohmann::ordered_json identity;
  for (const auto& [key, value] : tables.at("model").items()) {
    if (ModelSettings::is_identity(key)) identity[key] = value;
  }
  const auto own = tables.find("model." + config.model.kind);
  if (own != tables.end()) identity.update(*own);
  return identity;
}

nlohmann::ordered_json default_identity(const std::string& kind) {
  Config usual;
  usual.model.kind = kind;
  return model_identity(usual);
}

std::optional<ModelDifference> first_difference(const nlohmann::ordered_json& saved, const Config& config,
                                                const std::vector<std::string>& ignored) {
  const nlohmann::ordered_json wanted = model_identity(config);
  const nlohmann::ordered_json defaults = default_identity(config.model.kind);
  for (const auto& [key, value] : wanted.items()) {
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    // A key that did not exist yet when the checkpoint was made had its default.
    const nlohmann::ordered_json& then = saved.contains(key) ? saved.at(key) : defaults.at(key);
    if (then != value) return ModelDifference{key, then, value};
  }
  return std::nullopt;
}

void check_model_identity(const nlohmann::ordered_json& saved, const Config& config) {
  const auto differs = first_difference(saved, config);
  if (!differs) return;
  throw InputError(
      fmt::format("[model] {} is {}, but the checkpoint was made with {}; resume with the same model, or "
                  "start another run with --out",
                  differs->key, differs->wanted.dump(), differs->saved.dump()));
}

}  // namespace gyre
