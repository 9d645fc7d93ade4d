#include "gyre/config/config_changes.h"

#include <fmt/format.h>

#include "gyre/core/text.h"

namespace gyre {
using Json = nlohmann::ordered_json;

std::vector<ConfigChange> config_changes(const Config& before, const Config& after) {
  const Json old_tables = to_json(before), new_tables = to_json(after);
  std::vector<ConfigChange> changes;
  // A [[data.source]] may be in only one of the two; its values are null in the other.
  const auto value_in = [](const Json& tables, const std::string& table, const std::string& key) {
    return tables.contains(table) ? tables.at(table).at(key) : Json();
  };
  for (const auto& [table, keys] : new_tables.items()) {
    for (const auto& [key, value] : keys.items()) {
      const Json old_value = value_in(old_tables, table, key);
      if (old_value != value) changes.push_back({table, key, old_value, value});
    }
  }
  for (const auto& [table, keys] : old_tables.items()) {
    if (new_tables.contains(table)) continue;
    for (const auto& [key, value] : keys.items()) changes.push_back({table, key, value, Json()});
  }
  return changes;
}

std::vector<ConfigChange> changes_of(const std::string& table, const std::vector<ConfigChange>& changes) {
  std::vector<ConfigChange> found;
  for (const ConfigChange& change : changes) {
    if (change.table == table || change.table.starts_with(table + ".")) found.push_back(change);
  }
  return found;
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
