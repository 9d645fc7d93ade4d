// Numbers of the tokens that a tokenizer's files give a name of their own: "[CLS]".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gyre {

using TokenNumbers = std::map<std::string, int64_t>;

// Of a tokenizer.json, its added_tokens. InputError says what is wrong with the text, without naming a file.
TokenNumbers parse_added_tokens(std::string_view tokenizer_json);
// Of a vocab.txt, a token a line: those in brackets.
TokenNumbers parse_bracketed_tokens(std::string_view vocabulary);

}  // namespace gyre
