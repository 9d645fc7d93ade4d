// Converts the vocabulary files that preceded tokenizer.json to a tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre {

// GPT-2's files: a JSON object of tokens and their ids, and one merge per line. Throws InputError naming what is wrong.
std::string json_of_gpt2(std::string_view vocabulary, std::string_view merges, std::string_view config,
                         const std::string& origin);
// BERT's file: one token per line. Throws InputError likewise. There is no post-processor, which gyre would not use:
// with one, the tokenizers of earlier runs and data would count as others.
std::string json_of_bert(std::string_view vocabulary, std::string_view config, const std::string& origin);

// BERT's special tokens, by their names in a tokenizer_config.json.
const std::vector<std::pair<const char*, const char*>>& bert_special_tokens();
// For a text that json_of_bert() made: the same with the post-processor that puts [CLS] and [SEP] around texts, if the
// vocabulary has both. Empty for any other text.
std::optional<std::string> with_post_processor(const std::string& tokenizer_json);

}  // namespace gyre
