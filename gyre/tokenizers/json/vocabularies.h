// Vocabularies from before there was a tokenizer.json, written as one.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// GPT-2's: an object of tokens and their numbers, and a merge a line.
std::string json_of_gpt2(std::string_view vocabulary, std::string_view merges, std::string_view config,
                         const std::string& origin);
// BERT's: a token a line.
std::string json_of_bert(std::string_view vocabulary, std::string_view config, const std::string& origin);

}  // namespace gyre
