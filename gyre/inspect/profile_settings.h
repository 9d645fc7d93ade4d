// Which settings of a configuration a profile of its layers depends on. Layers that were measured with others, or of
// another model, say nothing of a run.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "gyre/config/config.h"
#include "gyre/plan/measured_layers.h"

namespace gyre {

// By key, such as "model.width". The configuration's vocabulary must be known.
std::map<std::string, nlohmann::json> profile_settings(const Config& config);

// Throws InputError, which names the first difference, unless the layers are those of the configuration's model and
// were measured with its settings. If its vocabulary is not known, it becomes the one that was measured with. origin:
// the layers' file, for messages.
void take_profile(const MeasuredLayers& measured, const std::string& origin, Config& config);

}  // namespace gyre
