// Generates the JSON schema of the configuration, from the same declarations as the reference.
#include "gyre/config/config.h"
#include "gyre/config/tables.h"
#include "gyre/core/json_schema.h"

namespace gyre {

nlohmann::ordered_json config_schema() {
  nlohmann::ordered_json root = table_schema();
  Config config;
  config.data.source.emplace_back().name = "NAME";
  const std::string source = source_table("NAME");
  for_each_field(config, [&](const std::string& table, const char* key, const auto& field, const Range& range,
                             const char* meaning) {
    // "optimizer.muon" is a table within "optimizer"; "data.source.NAME" is an item of a list within "data".
    nlohmann::ordered_json* place = &root;
    const size_t dot = table.find('.');
    const auto enter = [&](const std::string& name) {
      nlohmann::ordered_json& inner = (*place)["properties"][name];
      if (inner.is_null()) inner = table_schema();
      place = &inner;
    };
    enter(table.substr(0, dot));
    if (table == source) {
      nlohmann::ordered_json& list = (*place)["properties"]["source"];
      if (list.is_null()) {
        list = {{"type", "array"}, {"items", table_schema()}};
        list["items"]["properties"]["name"] = {
            {"type", "string"}, {"description", "by which --set calls it; its number where none is given"}};
      }
      place = &list["items"];
    } else if (dot != std::string::npos) {
      enter(table.substr(dot + 1));
    }
    (*place)["properties"][key] = option_schema(field, range, meaning);
  });
  nlohmann::ordered_json schema = {{"$schema", kJsonSchema}, {"title", "A run of gyre"}};
  schema.update(root);
  return schema;
}

}  // namespace gyre
