// Reads tables of TOML from a declaration of their fields: type, range and meaning. Errors say file, line and what to
// give instead. Also has the functions that write values as TOML.
#pragma once

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/faults.h"
#include "gyre/core/option_range.h"
#include "gyre/core/options.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_text.h"

namespace gyre {

inline std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// The shortest text that reads back to the same bits, recognisable as a float.
inline std::string toml_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
inline std::string toml_value(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return toml_string(value);
  else if constexpr (std::is_same_v<T, double>)
    return toml_number(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_same_v<T, int64_t>)
    return fmt::format("{}", value);
  else {
    std::vector<std::string> parts;
    for (const auto& item : value) parts.push_back(toml_value(item));
    return fmt::format("[{}]", join(parts, ", "));
  }
}

// Where an error is: a file and line, or the override's own text.
inline std::string place(const std::string& origin, const toml::node& node) {
  const bool is_override = origin.rfind("--set ", 0) == 0;
  return is_override ? origin : fmt::format("{}:{}", origin, node.source().begin.line);
}

inline int64_t line_of(const toml::node& node) {
  return static_cast<int64_t>(node.source().begin.line);
}

inline std::string found(const toml::node& node) {
  std::ostringstream text;
  if (const auto* value = node.as_string())
    text << '"' << printable(value->get()) << '"';
  else if (const auto* integer = node.as_integer())
    text << integer->get();
  else if (const auto* number = node.as_floating_point())
    text << toml_number(number->get());
  else if (const auto* boolean = node.as_boolean())
    text << (boolean->get() ? "true" : "false");
  else if (node.is_array())
    text << "a list";
  else
    text << "a " << node.type();
  return text.str();
}

template <typename T>
std::optional<T> read_scalar(const toml::node& node) {
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
  }
  if (const auto* value = node.as<T>()) return value->get();
  return std::nullopt;
}

template <typename T>
std::optional<T> read_value(const toml::node& node) {
  if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>) {
    const auto* array = node.as_array();
    if (array == nullptr) return std::nullopt;
    T values;
    for (const auto& item : *array) {
      const auto value = read_scalar<typename T::value_type>(item);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  } else {
    return read_scalar<T>(node);
  }
}

inline toml::table parse_toml(std::string_view text, const std::string& origin) {
  check_toml_text(text, origin);
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}:{}: {}", origin, error.source().begin.line, error.source().begin.column,
                                 error.description()));
  }
}

// Reads the values of `table`, which errors call [name], into fields. for_each(visit) calls visit(key, field, range,
// meaning) for every known key; others are the caller's. A field whose value is a fault keeps its old value. Returns
// the keys whose values were refused.
template <typename ForEach>
std::vector<std::string> read_known_keys(const toml::table& table, const std::string& name, const std::string& origin,
                                         Faults& faults, ForEach&& for_each) {
  std::vector<std::string> refused;
  for_each([&](const char* key, auto& field, const Range& range, const char*) {
    using T = std::remove_cvref_t<decltype(field)>;
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const std::string where = fmt::format("{}: [{}] {}", place(origin, *node), name, key);
    const bool taken = faults.collect(
        [&] {
          const auto value = read_value<T>(*node);
          if (!value) throw InputError(fmt::format("{} is {}; give {}", where, found(*node), type_name<T>()));
          check_range(where, *value, range);
          field = *value;
        },
        line_of(*node));
    if (!taken) refused.emplace_back(key);
  });
  return refused;
}

// read_known_keys(), and every other key is a fault.
template <typename ForEach>
void read_table(const toml::table& table, const std::string& name, const std::string& origin, Faults& faults,
                ForEach&& for_each) {
  std::vector<std::string> keys;
  for_each([&](const char* key, auto&&...) { keys.emplace_back(key); });
  for (const auto& [key_name, value] : table) {
    const std::string key(key_name.str());
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    faults.add(fmt::format("{}: unknown key '{}' in [{}]{}", place(origin, value), printable(key), name,
                           suggestion(key, keys)),
               line_of(value));
  }
  read_known_keys(table, name, origin, faults, for_each);
}

}  // namespace gyre
