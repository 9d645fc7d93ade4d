#include "gyre/exchange/hugging_face/config_fields.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/json_text.h"

namespace gyre {
namespace {

nlohmann::json without_nulls(const nlohmann::json& config) {
  if (!config.is_object()) return config;
  nlohmann::json said = nlohmann::json::object();
  for (const auto& [key, value] : config.items()) {
    if (!value.is_null()) said[key] = value;
  }
  return said;
}

}  // namespace

ConfigFields::ConfigFields(const nlohmann::json& config, std::string origin)
    : config_(without_nulls(config)), fields_(config_, std::move(origin)) {}

int64_t ConfigFields::whole(const char* key, int64_t usual) {
  fields_.read(key, usual);
  return usual;
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
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return usual;
  if (!value->is_boolean()) fail(fmt::format("'{}' must be true or false", key));
  return value->get<bool>();
}

void ConfigFields::only(const char* key, const nlohmann::json& value) {
  const nlohmann::json* const found = find(key);
  if (found == nullptr || *found == value) return;
  constexpr size_t kMaxShown = 80;
  std::string is = json_text(*found);
  if (is.size() > kMaxShown) is = is.substr(0, kMaxShown) + "...";
  fail(fmt::format("'{}' is {}, which gyre does not support{}", key, printable(is),
                   value.is_null() ? "" : fmt::format(" (only {})", value.dump())));
}

}  // namespace gyre
