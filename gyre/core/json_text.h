// JSON as text. Its strings may be any bytes, since names of files are: what is not UTF-8 in them is replaced by
// U+FFFD.
#pragma once

#include <string>

namespace gyre {

// Json: a type of nlohmann's. On one line without an indent.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace gyre
