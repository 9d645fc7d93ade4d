// Reads the numbers of special tokens, such as "[CLS]", from a tokenizer's files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gyre {

using TokenNumbers = std::map<std::string, int64_t>;

// The added_tokens of a tokenizer.json. InputError says what is wrong with the text, without naming a file.
TokenNumbers parse_added_tokens(std::string_view tokenizer_json);
// The tokens in brackets of a vocab.txt, which has a token a line.
TokenNumbers parse_bracketed_tokens(std::string_view vocabulary);

}  // namespace gyre
