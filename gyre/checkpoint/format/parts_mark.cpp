#include "gyre/checkpoint/format/parts_mark.h"

#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"

namespace gyre {

std::string to_text(const PartsMark& mark) {
  nlohmann::ordered_json json = {{"run", mark.run}};
  if (mark.is_of_parts()) {
    json["host"] = mark.host;
    json["directory"] = mark.directory;
  }
  return json_text(json) + "\n";
}

PartsMark parse_parts_mark(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) throw InputError("is not JSON");
  JsonFields fields(*json, "its content");
  PartsMark mark;
  fields.need("run", mark.run);
  if (fields.read("host", mark.host)) fields.need("directory", mark.directory);
  if (mark.host.empty()) mark.directory.clear();
  fields.reject_unknown();
  return mark;
}

}  // namespace gyre
