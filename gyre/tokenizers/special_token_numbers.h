// Reads the numbers of special tokens, such as "[CLS]", from a tokenizer's files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gyre {

using TokenNumbers = std::map<std::string, int64_t>;

// Those of the added_tokens of a tokenizer.json, and of the tokens in brackets of its vocabulary, which need not be
// among them. InputError says what is wrong with the text, without naming a file.
TokenNumbers special_token_numbers(std::string_view tokenizer_json);
// Those of the tokens in brackets of a vocab.txt, which has a token a line.
TokenNumbers bracketed_token_numbers(std::string_view vocabulary);

}  // namespace gyre
