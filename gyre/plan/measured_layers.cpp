#include "gyre/plan/measured_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gyre/core/error.h"
#include "gyre/core/input_file.h"
#include "gyre/core/json_fields.h"

namespace gyre {
namespace {

// So that sums over all layers and microbatches fit.
constexpr double kMostTime = 1e6;  // seconds
constexpr int64_t kMostBytes = int64_t{1} << 44;

template <typename Profile, typename Visit>
void for_each_field(Profile& layer, Visit&& visit) {
  visit("forward", layer.forward);
  visit("backward_input", layer.backward_input);
  visit("backward_weights", layer.backward_weights);
  visit("update", layer.update);
  visit("input_bytes", layer.input_bytes);
  visit("output_bytes", layer.output_bytes);
  visit("activation_bytes", layer.activation_bytes);
  visit("passing_bytes", layer.passing_bytes);
  visit("weights_passing_bytes", layer.weights_passing_bytes);
  visit("split_bytes", layer.split_bytes);
  visit("weight_bytes", layer.weight_bytes);
  visit("gradient_bytes", layer.gradient_bytes);
  visit("optimizer_bytes", layer.optimizer_bytes);
  visit("late_bytes", layer.late_bytes);
  visit("forecast_bytes", layer.forecast_bytes);
  visit("update_bytes", layer.update_bytes);
  visit("late_update_bytes", layer.late_update_bytes);
  visit("tied_bytes", layer.tied_bytes);
}

LayerProfile read_layer(const nlohmann::json& json, const std::string& where) {
  JsonFields fields(json, where);
  LayerProfile layer;
  fields.need("name", layer.name);
  const auto read = [&](const char* key, auto& field, auto most) {
    fields.need(key, field);
    if (field > most) fields.fail(fmt::format("'{}' is {}; give 0 to {}", key, field, most));
  };
  for_each_field(layer, [&](const char* key, auto& field) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, double>) {
      read(key, field, kMostTime);
    } else {
      read(key, field, kMostBytes);
    }
  });
  fields.find("backward");  // follows from its halves
  fields.reject_unknown();
  return layer;
}

}  // namespace

nlohmann::ordered_json to_json(const MeasuredLayers& measured) {
  nlohmann::ordered_json json = {{"measured_with", measured.settings}, {"layers", nlohmann::ordered_json::array()}};
  for (const LayerProfile& layer : measured.layers) {
    nlohmann::ordered_json& entry = json["layers"].emplace_back();
    entry["name"] = layer.name;
    for_each_field(layer, [&](const char* key, const auto& field) {
      entry[key] = field;
      if (key == std::string_view("forward")) entry["backward"] = layer.backward();
    });
  }
  return json;
}

MeasuredLayers parse_layers(std::string_view text, const std::string& origin) {
  const auto json = parse_json(text);
  if (!json) throw InputError(fmt::format("{}: not JSON; give what gyre plan --json printed", origin));
  JsonFields root(*json, origin);
  const nlohmann::json* const settings = root.find("measured_with");
  const nlohmann::json* const layers = root.find("layers");
  if (settings == nullptr || !settings->is_object() || layers == nullptr || !layers->is_array()) {
    root.fail("has no 'measured_with' and 'layers'; give what gyre plan --json printed");
  }
  MeasuredLayers measured;
  for (const auto& [key, value] : settings->items()) measured.settings[key] = value;
  for (const nlohmann::json& layer : *layers) {
    measured.layers.push_back(read_layer(layer, fmt::format("{}: layers[{}]", origin, measured.layers.size())));
  }
  const auto is_free = [](const LayerProfile& layer) { return layer.forward + layer.backward() == 0; };
  if (std::ranges::all_of(measured.layers, is_free)) root.fail("no layer takes any time");
  return measured;
}

MeasuredLayers load_layers(const std::filesystem::path& path) {
  return parse_layers(read_file(path), path.string());
}

}  // namespace gyre
