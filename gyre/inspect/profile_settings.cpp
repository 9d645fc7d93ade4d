#include "gyre/inspect/profile_settings.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/text.h"
#include "gyre/model/settings/special_tokens.h"

namespace gyre {
namespace {

constexpr const char* kAccumulate = "pipeline.accumulate";  // only whether it is more than 1 matters

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw InputError(fmt::format("{}: its layers {}; measure them with gyre plan --json", origin, what));
}

std::string value_of(const nlohmann::json* value) {
  return value == nullptr ? "nothing" : printable(value->dump());
}

// The model's settings with the numbers that were measured: its vocabulary and those of its kind.
ModelSettings with_measured_numbers(const MeasuredLayers& measured, ModelSettings model) {
  const auto take = [&](const std::string& key, int64_t& number) {
    const auto found = measured.settings.find(key);
    if (found != measured.settings.end()) number = whole_number(found->second).value_or(number);
  };
  take("model.vocabulary", model.vocabulary);
  const auto own = model.own.tables().find(model.kind);
  if (own == model.own.tables().end()) return model;
  own->second.each_option([&](const std::string& key, auto& field, auto&&...) {
    if constexpr (std::is_same_v<decltype(field), int64_t&>) take(fmt::format("model.{}.{}", model.kind, key), field);
  });
  return model;
}

}  // namespace

std::map<std::string, nlohmann::json> profile_settings(const Config& config) {
  const nlohmann::ordered_json tables = to_json(config);
  std::map<std::string, nlohmann::json> settings;
  const auto add = [&](const std::string& table, const std::string& key) {
    settings[fmt::format("{}.{}", table, key)] = tables.at(table).at(key);
  };
  const auto add_table = [&](const std::string& table) {
    if (!tables.contains(table)) return;  // the kind has no options of its own
    for (const auto& [key, value] : tables.at(table).items()) add(table, key);
  };
  add_table("model");
  add_table("model." + config.model.kind);
  for (const char* key : {"kind", "moments", "ema_decay"}) add("optimizer", key);
  add_table("optimizer." + config.optimizer.kind);
  for (const char* key : {"microbatch", "accumulate", "weights", "device", "threads_per_worker"}) add("pipeline", key);
  add("run", "precision");
  return settings;
}

void take_profile(const MeasuredLayers& measured, const std::string& origin, Config& config) {
  const auto measured_with = [&](const std::string& key) {
    const auto found = measured.settings.find(key);
    return found == measured.settings.end() ? nullptr : &found->second;
  };
  leave_as_begun(with_measured_numbers(measured, config.model), config.model);
  for (const auto& [key, value] : profile_settings(config)) {
    const nlohmann::json* before = measured_with(key);
    const auto several = [](const nlohmann::json& count) { return whole_number(count).value_or(0) > 1; };
    const bool same = before != nullptr && (key == kAccumulate ? several(*before) == several(value) : *before == value);
    if (!same) {
      refuse(origin, fmt::format("were measured with {} = {}, and the configuration has {}", key, value_of(before),
                                 value_of(&value)));
    }
  }
  const Layers layers = build_layers(config);
  if (layers.size() != measured.layers.size()) {
    refuse(origin, fmt::format("are {}, and the model has {}", measured.layers.size(), layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (measured.layers[i].name == layers[i]->name()) continue;
    refuse(origin, fmt::format("are those of another model: '{}' is where '{}' should be",
                               printable(measured.layers[i].name), layers[i]->name()));
  }
}

}  // namespace gyre
