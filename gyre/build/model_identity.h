// What must agree between a checkpoint and the configuration that continues it: the model's shape.
#pragma once

#include <nlohmann/json.hpp>

#include "gyre/config/config.h"

namespace gyre {

nlohmann::ordered_json model_identity(const Config& config);
// InputError naming the first key that differs, with both values.
void check_model_identity(const nlohmann::ordered_json& saved, const Config& config);

}  // namespace gyre
