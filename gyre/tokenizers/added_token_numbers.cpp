#include "gyre/tokenizers/added_token_numbers.h"

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"

namespace gyre {

TokenNumbers added_token_numbers(std::string_view tokenizer_json) {
  const auto json = parse_json(tokenizer_json);
  if (!json) throw InputError("is not JSON");
  JsonFields fields(*json, "its content");
  const nlohmann::json* const added = fields.find("added_tokens");
  TokenNumbers numbers;
  if (added == nullptr) return numbers;
  if (!added->is_array()) fields.fail("'added_tokens' must be a list");
  for (const nlohmann::json& token : *added) {
    JsonFields entry(token, "a token of 'added_tokens'");
    numbers[entry.need<std::string>("content")] = entry.need<int64_t>("id");
  }
  return numbers;
}

TokenNumbers bracketed_token_numbers(std::string_view vocabulary) {
  TokenNumbers numbers;
  int64_t number = 0;
  for (size_t begin = 0; begin < vocabulary.size(); ++number) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    std::string_view token = vocabulary.substr(begin, end - begin);
    if (token.ends_with('\r')) token.remove_suffix(1);
    if (token.starts_with('[') && token.ends_with(']')) numbers.emplace(token, number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace gyre
