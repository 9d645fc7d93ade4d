// The model's layers as a plan has measured them, in JSON: gyre plan --json writes them, and another plan, also one on
// another machine, reads them instead of measuring.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/plan/stage_costs.h"

namespace gyre {

struct MeasuredLayers {
  std::map<std::string, nlohmann::json> settings;  // that the measurements depend on, such as "model.width": 384
  std::vector<LayerProfile> layers;                // in the model's order
  bool operator==(const MeasuredLayers&) const = default;
};

// {"measured_with": {settings}, "layers": [...]}. A layer's "backward" is the sum of its halves.
nlohmann::ordered_json to_json(const MeasuredLayers& measured);
// The inverse; other keys of the object are ignored. Throws InputError that says what is wrong and where.
MeasuredLayers parse_layers(std::string_view json, const std::string& origin);
MeasuredLayers load_layers(const std::filesystem::path& path);

}  // namespace gyre
