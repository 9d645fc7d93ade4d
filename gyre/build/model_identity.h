// What must agree between a checkpoint and the configuration that continues it: the model's shape.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gyre/config/config.h"

namespace gyre {

nlohmann::ordered_json model_identity(const Config& config);
// That of a model whose options are all at their defaults.
nlohmann::ordered_json default_identity(const std::string& kind);

struct ModelDifference {
  std::string key;
  nlohmann::ordered_json saved, wanted;
};
// The first key in which a checkpoint's model and the configuration's differ, apart from those in `ignored`.
std::optional<ModelDifference> first_difference(const nlohmann::ordered_json& saved, const Config& config,
                                                const std::vector<std::string>& ignored = {});
// Throws InputError naming the first key that differs, with both values.
void check_model_identity(const nlohmann::ordered_json& saved, const Config& config);

}  // namespace gyre
