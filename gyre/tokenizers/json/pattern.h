// Reads patterns and flags of a tokenizer.json.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "gyre/core/error.h"
#include "gyre/tokenizers/json/regex.h"

namespace gyre {

// {"Regex": "..."} or {"String": "..."}.
inline Regex parse_pattern(const nlohmann::json& json, const std::string& where) {
  if (json.is_object() && json.size() == 1 && json.begin()->is_string()) {
    const auto text = json.begin()->get<std::string>();
    if (json.begin().key() == "Regex" && !text.empty()) return Regex(text, where);
    if (json.begin().key() == "String" && !text.empty()) return Regex::literal(text, where);
  }
  throw InputError(fmt::format("{}: 'pattern' must be an object with a 'Regex' or a 'String'", where));
}

// The flag at `key`; `otherwise` if it is missing or not a boolean.
inline bool flag_of(const nlohmann::json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace gyre
