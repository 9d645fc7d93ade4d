// JSON schemas of options, for editors that complete and check TOML.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "gyre/core/options.h"

namespace gyre {

inline constexpr const char* kJsonSchema = "http://json-schema.org/draft-07/schema#";

// A table without keys yet: the caller adds them to "properties"; all other keys are faults.
inline nlohmann::ordered_json table_schema() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", nlohmann::ordered_json::object()}};
}

// An option of type T, without its default.
template <typename T>
nlohmann::ordered_json value_schema(const Range& range) {
  nlohmann::ordered_json schema;
  if constexpr (std::is_same_v<T, bool>) {
    schema["type"] = "boolean";
  } else if constexpr (std::is_same_v<T, std::string>) {
    schema["type"] = "string";
    if (!range.choices.empty()) schema["enum"] = range.choices;
  } else if constexpr (std::is_arithmetic_v<T>) {
    constexpr bool is_whole = std::is_same_v<T, int64_t>;
    schema["type"] = is_whole ? "integer" : "number";
    const auto bound = [&](const char* key, double value) {
      if constexpr (is_whole) {
        schema[key] = static_cast<int64_t>(value);
      } else {
        schema[key] = value;
      }
    };
    if (range.least > -1e300) bound("minimum", range.least);
    if (range.most < 1e300) bound("maximum", range.most);
  } else {
    schema["type"] = "array";
    schema["items"] = value_schema<typename T::value_type>(range);
  }
  return schema;
}

template <typename T>
nlohmann::ordered_json option_schema(const T& value, const Range& range, const char* meaning) {
  nlohmann::ordered_json schema = value_schema<T>(range);
  schema["description"] = meaning;
  schema["default"] = value;
  return schema;
}

}  // namespace gyre
