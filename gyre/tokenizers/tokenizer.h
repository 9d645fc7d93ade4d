// Tokenizers: from text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

inline constexpr int64_t kSmallestVocabulary = 300;  // for bpe: every byte is a piece

// All functions are const and safe to call from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary_size() const = 0;
  // The token that follows every document.
  virtual int32_t end_of_document() const = 0;
  virtual std::string end_of_document_text() const = 0;  // as the vocabulary writes it
  // Appends the tokens of `text`, which must be UTF-8. The tokenizer of a tokenizer.json throws InputError if it is
  // not; the others do not check.
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;
  // The same for text that follows a cut.
  virtual void encode_rest(std::string_view text, std::vector<int32_t>& tokens) const { encode(text, tokens); }
  // The last place where `text`, the beginning of a long text, may be cut so that encode() of the part before and
  // encode_rest() of the part after give the tokens of the whole. 0: nowhere.
  virtual size_t cut(std::string_view text) const = 0;
  // The text of tokens. decode(encode(text)) equals `text` to the byte for tokenizers that change no text: bytes, our
  // own bpe but for U+2581, byte-level BPE without a normalizer. Where the tokens end within a character, so do the
  // bytes.
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
};

// Bytes: vocabulary 256. NUL, which does not occur in text, ends a document. See byte_tokenizer.cpp.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// Makes a tokenizer from the bytes of a sentencepiece model; `origin` is what errors call it, `end_of_document` a
// piece, or empty for the model's own. Throws InputError, always if gyre was built without sentencepiece
// (sentencepiece/no_sentencepiece.cpp).
std::unique_ptr<Tokenizer> parse_sentencepiece_tokenizer(const std::string& model, const std::string& origin,
                                                         const std::string& end_of_document);
// Trains BPE on the lines of `sample` and returns the model. Deterministic. Throws InputError if the sample is too
// small for so many pieces, or its characters need more. `text_has_more`: than the sample, for the error.
std::string train_bpe_tokenizer(const std::vector<std::string>& sample, int64_t vocabulary_size,
                                bool text_has_more = false);
bool has_sentencepiece();

// The tokenizers that need no file: "byte", and "bpe" if gyre was built with sentencepiece.
std::vector<std::string> tokenizer_names();

}  // namespace gyre
