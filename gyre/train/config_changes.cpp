#include "gyre/train/config_changes.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/toml_fields.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  Json items = Json::array();
  for (const toml::node& item : *node.as_array()) items.push_back(json_of(item));
  return items;
}

}  // namespace

std::vector<ConfigChange> config_changes(const Config& before, const Config& after) {
  // The text has every key of both, whatever keys there are.
  const toml::table old_tables = parse_toml(to_toml(before), "configuration");
  const toml::table new_tables = parse_toml(to_toml(after), "configuration");
  std::vector<ConfigChange> changes;
  for (const auto& [table, keys] : new_tables) {
    for (const auto& [key, value] : *keys.as_table()) {
      const Json old_value = json_of(*old_tables[table][key].node()), new_value = json_of(value);
      if (old_value == new_value) continue;
      changes.push_back({std::string(table.str()), std::string(key.str()), old_value, new_value});
    }
  }
  return changes;
}

void refuse_other_run(const std::vector<ConfigChange>& changes) {
  for (const ConfigChange& change : changes) {
    if (change.table != "model" && !(change.table == "run" && change.key == "seed")) continue;
    throw InputError(
        fmt::format("[{}] {} is {}, but the run was begun with {}; resume it with the same, or start another run with "
                    "--out",
                    change.table, change.key, change.after.dump(), change.before.dump()));
  }
}

Json to_json(const std::vector<ConfigChange>& changes) {
  Json json = Json::object();
  for (const ConfigChange& change : changes) {
    json[fmt::format("{}.{}", change.table, change.key)] = {change.before, change.after};
  }
  return json;
}

std::string describe(const std::vector<ConfigChange>& changes) {
  std::vector<std::string> parts;
  for (const ConfigChange& change : changes) {
    parts.push_back(fmt::format("{}.{} {} -> {}", change.table, change.key, change.before.dump(), change.after.dump()));
  }
  return join(parts, ", ");
}

}  // namespace gyre
