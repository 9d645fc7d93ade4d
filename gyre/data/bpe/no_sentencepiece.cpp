// Stands in for byte-pair encoding where sentencepiece was not there at build time.
#include "gyre/core/error.h"
#include "gyre/data/tokenizer.h"

namespace gyre {
namespace {

[[noreturn]] void refuse() {
  throw InputError(
      "the bpe tokenizer needs sentencepiece; install libsentencepiece-dev and libabsl-dev and build again, or use "
      "byte");
}

}  // namespace

bool has_bpe() {
  return false;
}
std::unique_ptr<Tokenizer> parse_bpe_tokenizer(const std::string&, const std::filesystem::path&) {
  refuse();
}
std::string train_bpe_tokenizer(const std::vector<std::string>&, int64_t) {
  refuse();
}

}  // namespace gyre
