// A tokenizer as stored with data and runs, and functions to read users' own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gyre/tokenizers/tokenizer.h"

namespace gyre {

inline constexpr const char* kTokenizerModelFile = "tokenizer.model";         // of sentencepiece
inline constexpr const char* kTokenizerJsonFile = "tokenizer.json";           // of Hugging Face's tokenizers
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";  // beside either, for later readers

// The most bytes that a tokenizer's file may have; those of the largest vocabularies have tens of MB.
inline constexpr uint64_t kMostOfTokenizer = uint64_t{512} << 20;

struct TokenizerModel {
  std::string kind = "byte";    // "byte", "bpe" (ours), "sentencepiece", "json"
  std::string content;          // of the kind's file
  std::string config;           // tokenizer_config.json as the user brought it, with the eos_token; empty: none
  std::string end_of_document;  // the token's text; empty: the configuration's, or else the tokenizer's default

  // The name of the kind's file; empty for a kind without one. Null for an unknown kind.
  static const char* file_of(const std::string& kind);
};

// Throws InputError for a model that cannot be used; `origin` is what errors call the file.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerModel& model, const std::string& origin);

// A form in which a directory may have a tokenizer.
struct TokenizerForm {
  std::vector<const char*> files;
  const char* taken_for = "";  // the model type that files without rules of their own are read as; they are converted
};
const std::vector<TokenizerForm>& tokenizer_forms();
// The form that counts in a directory: the first one that it has. But a tokenizer.json of the model type Unigram, which
// gyre does not read, yields to the tokenizer.model that it was made from. Null if there is none.
const TokenizerForm* tokenizer_form_in(const std::filesystem::path& directory);

// Reads a user's tokenizer: a sentencepiece model, a tokenizer.json, a file of another of tokenizer_forms() with those
// that belong to it beside it, or a directory with one of these forms.
// Those of GPT-2 and BERT are converted to a tokenizer.json. Tokens that the files beside it add are put into a
// tokenizer.json. Throws InputError naming what is missing or unknown, or does not fit together.
TokenizerModel read_tokenizer(const std::filesystem::path& path, const std::string& end_of_document = "");

}  // namespace gyre
