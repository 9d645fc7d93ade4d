// Reads JSON from outside: bounded nesting, fields with a type and a range, errors that say where. The counterpart of
// toml_fields.h.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

// The parser does not recurse, but copying, comparing and writing a value do: deeper text is refused.
inline constexpr int kMaxJsonDepth = 64;

inline bool is_nested_too_deeply(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// Empty if the text is not JSON or is nested too deeply. The default type sorts keys: ordered_json searches keys
// linearly, which makes reading a long object quadratic.
template <typename Json = nlohmann::json>
std::optional<Json> parse_json(std::string_view text) {
  if (is_nested_too_deeply(text)) return std::nullopt;
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

// `value` if it is a whole number that fits int64_t, also when written as 1e9; otherwise empty.
template <typename Json>
std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.template get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.template get<double>();
  if (!(std::abs(number) < 9.2e18) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// The fields of one object. Numbers must be 0 or more, as are all that gyre stores in JSON.
template <typename Json = nlohmann::json>
class JsonFields {
 public:
  // `object` must outlive this; `where` names it in errors.
  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("must be an object");
  }

  // Reads the field if it is present; returns whether it was.
  template <typename T>
  bool read(const char* key, T& field) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) return false;
    take(key, *found, field);
    return true;
  }
  template <typename T>
  void need(const char* key, T& field) {
    if (!read(key, field)) fail(fmt::format("'{}' is missing", key));
  }
  template <typename T>
  T need(const char* key) {
    T field{};
    need(key, field);
    return field;
  }
  // The value of a required key, of any type.
  const Json& at(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) fail(fmt::format("'{}' is missing", key));
    return *found;
  }
  // The value of a key, or null.
  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void reject_unknown() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        fail(fmt::format("unknown key '{}'{}", printable(key), suggestion(key, known_)));
      }
    }
  }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{}: {}", where_, what)); }

 private:
  template <typename T>
  void take(const char* key, const Json& value, T& field) const {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_string()) fail(fmt::format("'{}' must be a string", key));
      field = value.template get<std::string>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (!value.is_number()) fail(fmt::format("'{}' must be a number", key));
      field = value.template get<double>();
      if (!(field >= 0) || !std::isfinite(field)) fail(fmt::format("'{}' is {}; give 0 or more", key, field));
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      if (!value.is_number_unsigned()) fail(fmt::format("'{}' must be a whole number, 0 or more", key));
      field = value.template get<uint64_t>();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      const auto number = whole_number(value);
      if (!number || *number < 0) fail(fmt::format("'{}' must be a whole number, 0 or more", key));
      field = *number;
    } else if constexpr (requires { typename T::mapped_type; }) {
      if (!value.is_object()) fail(fmt::format("'{}' must be an object", key));
      field.clear();
      for (const auto& [name, item] : value.items()) take(name.c_str(), item, field[name]);
    } else {  // a list
      if (!value.is_array()) fail(fmt::format("'{}' must be a list", key));
      field.clear();
      for (const Json& item : value) take(key, item, field.emplace_back());
    }
  }

  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

}  // namespace gyre
