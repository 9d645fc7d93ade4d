#include "gyre/core/utf8.h"
#include "gyre/tokenizers/tokenizer.h"

namespace gyre {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  int64_t vocabulary_size() const override { return 256; }
  int32_t end_of_document() const override { return 0; }
  std::string end_of_document_text() const override { return "NUL"; }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override {
    // Not reserve(): it makes room for just this text, and every text of many would be moved again.
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    tokens.insert(tokens.end(), bytes, bytes + text.size());
  }
  size_t cut(std::string_view text) const override { return whole_characters(text); }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (const int32_t token : tokens) text.push_back(static_cast<char>(token));
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> names = {"byte"};
  if (has_sentencepiece()) names.emplace_back("bpe");
  return names;
}

}  // namespace gyre
