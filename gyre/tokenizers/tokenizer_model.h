// A tokenizer as it is kept beside data and runs, and how users bring theirs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gyre/tokenizers/tokenizer.h"

namespace gyre {

inline constexpr const char* kTokenizerModelFile = "tokenizer.model";         // of sentencepiece
inline constexpr const char* kTokenizerJsonFile = "tokenizer.json";           // of Hugging Face's tokenizers
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";  // beside either, for who reads it next

struct TokenizerModel {
  std::string kind = "byte";    // "byte", "bpe" (ours), "sentencepiece", "json"
  std::string content;          // of the file that the kind has
  std::string config;           // tokenizer_config.json as the user brought it; empty: none
  std::string end_of_document;  // the token's text; empty: the tokenizer's own choice

  // The name of the kind's file; empty for a kind without one. Null for an unknown kind.
  static const char* file_of(const std::string& kind);
};

// InputError; `origin` is what errors call the file.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerModel& model, const std::string& origin);

// A user's tokenizer: a sentencepiece model, a tokenizer.json, or a directory with one of: tokenizer.json,
// tokenizer.model, vocab.json and merges.txt (or encoder.json and vocab.bpe) as of GPT-2, vocab.txt as of BERT. The
// last two are written as a tokenizer.json. InputError naming what is missing or unknown.
TokenizerModel read_tokenizer(const std::filesystem::path& path, const std::string& end_of_document = "");

}  // namespace gyre
