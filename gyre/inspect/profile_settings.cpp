#include "gyre/inspect/profile_settings.h"

#include <fmt/format.h>

#include <optional>

#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr const char* kVocabulary = "model.vocabulary";
constexpr const char* kAccumulate = "pipeline.accumulate";  // only whether it is more than 1 matters

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw InputError(fmt::format("{}: its layers {}; measure them with gyre plan --json", origin, what));
}

std::string value_of(const nlohmann::json* value) {
  return value == nullptr ? "nothing" : printable(value->dump());
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
  if (const nlohmann::json* vocabulary = measured_with(kVocabulary); config.model.vocabulary == 0 && vocabulary) {
    config.model.vocabulary = whole_number(*vocabulary).value_or(0);
  }
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
