// Tokenizers: text to numbers and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

inline constexpr int64_t kSmallestVocabulary = 300;  // of bpe: every byte is a piece

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary_size() const = 0;
  // The token that follows every document.
  virtual int32_t end_of_document() const = 0;
  // Appends the tokens of `text` (UTF-8). decode(encode(text)) == text.
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
};

// Bytes: vocabulary 256; NUL, which text does not have, ends a document. byte_tokenizer.cpp
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// Byte-pair encoding by sentencepiece. bpe/bpe_tokenizer.cpp, or bpe/no_sentencepiece.cpp, which refuses with an
// InputError. From the bytes of a model; `origin` is for the error when they are none.
std::unique_ptr<Tokenizer> parse_bpe_tokenizer(const std::string& model, const std::filesystem::path& origin);
// Trains on the lines of `sample` and returns the model. Deterministic. InputError when the sample cannot carry so many
// pieces.
std::string train_bpe_tokenizer(const std::vector<std::string>& sample, int64_t vocabulary_size);
bool has_bpe();

// "byte", and "bpe" where sentencepiece is there.
std::vector<std::string> tokenizer_names();

}  // namespace gyre
