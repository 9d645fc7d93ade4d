// Tokenizers: text to numbers and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

inline constexpr int64_t kSmallestVocabulary = 300;  // of bpe: every byte is a piece

// All of it is const, and safe to call from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary_size() const = 0;
  // The token that follows every document.
  virtual int32_t end_of_document() const = 0;
  virtual std::string end_of_document_text() const = 0;  // as the vocabulary writes it
  // Appends the tokens of `text`, UTF-8. InputError for what is not.
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;
  // The same for what follows a cut in a text.
  virtual void encode_rest(std::string_view text, std::vector<int32_t>& tokens) const { encode(text, tokens); }
  // Where the beginning of a long text may be cut, as late as can be: encode() of what is before it and encode_rest()
  // of what follows give the tokens of the whole. 0: nowhere.
  virtual size_t cut(std::string_view text) const = 0;
  // The text of tokens. That of encode(text) is `text` to the byte where the tokenizer changes none of it: bytes, our
  // own bpe, byte-level BPE without a normalizer.
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
};

// Bytes: vocabulary 256; NUL, which text does not have, ends a document. byte_tokenizer.cpp
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// sentencepiece, where it was there at build time; sentencepiece/no_sentencepiece.cpp refuses with an InputError. From
// the bytes of a model; `origin` is what errors call it, `end_of_document` a piece, or empty for the model's own.
std::unique_ptr<Tokenizer> parse_sentencepiece_tokenizer(const std::string& model, const std::string& origin,
                                                         const std::string& end_of_document);
// Trains BPE on the lines of `sample` and returns the model. Deterministic. InputError when the sample cannot carry so
// many pieces.
std::string train_bpe_tokenizer(const std::vector<std::string>& sample, int64_t vocabulary_size);
bool has_sentencepiece();

// What can be had without a file: "byte", and "bpe" where sentencepiece is there.
std::vector<std::string> tokenizer_names();

}  // namespace gyre
