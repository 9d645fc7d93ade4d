// Models, which turn a word into tokens: the "model" of a tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gyre/tokenizers/json/merges.h"

namespace gyre {

inline constexpr int64_t kMaxTokenIds = 4'000'000;  // of one vocabulary

// Allows lookups with views of a text, without a copy.
struct StringHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using Vocabulary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the tokens of `word`.
  virtual void encode(std::string_view word, std::vector<int32_t>& tokens, MergeScratch& scratch) const = 0;
  // Appends the bytes that a token stands for; `first`: it is the first token.
  virtual void decode(int32_t token, bool first, std::string& text) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  // Whether some token has a blank after other characters, so that it may span two words.
  virtual bool crosses_blanks() const = 0;
};

// Throws InputError naming what this gyre does not support. `byte_level`: characters stand for bytes.
std::unique_ptr<WordModel> parse_word_model(const nlohmann::json& json, bool byte_level, const std::string& origin);
std::unique_ptr<WordModel> parse_bpe(const nlohmann::json& json, bool byte_level, const std::string& where);
std::unique_ptr<WordModel> parse_word_piece(const nlohmann::json& json, const std::string& where);

// The "vocab" of a model: each string and each id once, ids in range.
Vocabulary parse_vocabulary(const nlohmann::json& json, const std::string& where);

}  // namespace gyre
