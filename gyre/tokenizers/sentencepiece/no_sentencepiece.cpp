// Replaces sentencepiece if it was missing at build time: throws InputError.
#include "gyre/core/error.h"
#include "gyre/tokenizers/tokenizer.h"

namespace gyre {
namespace {

[[noreturn]] void refuse() {
  throw InputError(
      "this tokenizer needs sentencepiece; install libsentencepiece-dev and libabsl-dev and build again, or use "
      "byte");
}

}  // namespace

bool has_sentencepiece() {
  return false;
}
std::unique_ptr<Tokenizer> parse_sentencepiece_tokenizer(const std::string&, const std::string&, const std::string&) {
  refuse();
}
std::string train_bpe_tokenizer(const std::vector<std::string>&, int64_t, bool) {
  refuse();
}

}  // namespace gyre
