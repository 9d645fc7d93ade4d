#include "gyre/tokenizers/special_token_numbers.h"

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"

namespace gyre {
namespace {

bool is_bracketed(std::string_view token) {
  return token.starts_with('[') && token.ends_with(']');
}

void add_added_tokens(const nlohmann::json& tokenizer, TokenNumbers& numbers) {
  JsonFields fields(tokenizer, "its content");
  const nlohmann::json* const added = fields.find("added_tokens");
  if (added == nullptr) return;
  if (!added->is_array()) fields.fail("'added_tokens' must be a list");
  for (const nlohmann::json& token : *added) {
    JsonFields entry(token, "a token of 'added_tokens'");
    numbers[entry.need<std::string>("content")] = entry.need<int64_t>("id");
  }
}

// A Unigram's vocabulary, which is a list, is not looked at: gyre reads no such tokenizer.
void add_vocabulary(const nlohmann::json& tokenizer, TokenNumbers& numbers) {
  const auto model = tokenizer.find("model");
  if (model == tokenizer.end()) return;
  const auto vocabulary = model->find("vocab");
  if (vocabulary == model->end() || !vocabulary->is_object()) return;
  JsonFields fields(*vocabulary, "its vocabulary");
  for (const auto& [token, number] : vocabulary->items()) {
    if (is_bracketed(token)) numbers[token] = fields.need<int64_t>(token.c_str());
  }
}

}  // namespace

TokenNumbers special_token_numbers(std::string_view tokenizer_json) {
  const auto json = parse_json(tokenizer_json);
  if (!json) throw InputError("is not JSON");
  TokenNumbers numbers;
  add_added_tokens(*json, numbers);
  add_vocabulary(*json, numbers);  // whose numbers count if both have a token
  return numbers;
}

TokenNumbers bracketed_token_numbers(std::string_view vocabulary) {
  TokenNumbers numbers;
  int64_t number = 0;
  for (size_t begin = 0; begin < vocabulary.size(); ++number) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    std::string_view token = vocabulary.substr(begin, end - begin);
    if (token.ends_with('\r')) token.remove_suffix(1);
    if (is_bracketed(token)) numbers.emplace(token, number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace gyre
