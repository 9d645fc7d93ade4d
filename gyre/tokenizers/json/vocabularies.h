// Converts the vocabulary files that preceded tokenizer.json to a tokenizer.json.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

// GPT-2's files: a JSON object of tokens and their ids, and one merge per line. Throws InputError naming what is wrong.
std::string json_of_gpt2(std::string_view vocabulary, std::string_view merges, std::string_view config,
                         const std::string& origin);
// BERT's file: one token per line. Throws InputError likewise.
std::string json_of_bert(std::string_view vocabulary, std::string_view config, const std::string& origin);

}  // namespace gyre
