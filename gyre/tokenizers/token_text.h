// The text of a token in a tokenizer_config.json, which is a string or an object with "content"; empty for anything
// else.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gyre {

inline std::string token_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) return value["content"];
  return "";
}

}  // namespace gyre
