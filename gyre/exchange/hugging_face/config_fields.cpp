#include "gyre/exchange/hugging_face/config_fields.h"

#include <fmt/format.h>

#include "gyre/core/json_text.h"

namespace gyre {

int64_t ConfigFields::whole(const char* key, int64_t if_missing, int64_t if_null) {
  const nlohmann::json* const value = fields_.find(key);
  if (value == nullptr) return if_missing;
  return value->is_null() ? if_null : whole(key);
}

double ConfigFields::number(const char* key, double usual) {
  fields_.read(key, usual);
  return usual;
}

std::string ConfigFields::word(const char* key, const std::string& usual) {
  std::string text = usual;
  fields_.read(key, text);
  return text;
}

bool ConfigFields::flag(const char* key, bool usual) {
  const nlohmann::json* const value = fields_.find(key);
  if (value == nullptr) return usual;
  if (!value->is_boolean()) fail(fmt::format("'{}' must be true or false", key));
  return value->get<bool>();
}

const nlohmann::json* ConfigFields::find(const char* key) {
  const nlohmann::json* const value = fields_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void ConfigFields::only(const char* key, const nlohmann::json& value) {
  const nlohmann::json* const found = fields_.find(key);
  if (found == nullptr || *found == value) return;
  if (value.is_boolean() && !found->is_boolean()) fail(fmt::format("'{}' must be true or false", key));
  constexpr size_t kMaxShown = 80;
  std::string is = json_text(*found);
  if (is.size() > kMaxShown) is = is.substr(0, kMaxShown) + "...";
  fail(fmt::format("'{}' is {}, which gyre does not support{}", key, printable(is),
                   value.is_null() ? "" : fmt::format(" (only {})", value.dump())));
}

}  // namespace gyre
