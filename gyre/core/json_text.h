// JSON as text, and numbers in it.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace gyre {

// Json: a type of nlohmann's. On one line without an indent. Its strings may be any bytes, since names of files are:
// what is not UTF-8 in them is replaced by U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// A number, or null where it is not finite, which JSON cannot say.
inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace gyre
