// Token files, read as they are from a file in memory: what is accepted can be read to its last token.
#include "gyre/data/token_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/targets.h"

namespace gyre::fuzz {
namespace {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    require(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
            "a file in memory takes the input");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

void token_file(std::string_view input) {
  const MemoryFile content(input);
  const auto file = accepted([&] { return TokenFile(content.path()); });
  if (!file) return;
  require(file->size() <= static_cast<int64_t>(input.size()), "no more tokens than bytes");
  constexpr int64_t kVocabulary = 1000;
  const int64_t largest = file->scan().largest;
  if (largest >= kVocabulary) return;
  std::vector<int64_t> tokens(static_cast<size_t>(file->size()));
  file->read(0, tokens, kVocabulary);
  const bool known = std::all_of(tokens.begin(), tokens.end(), [&](int64_t t) { return t >= 0 && t <= largest; });
  require(known, "tokens are of the vocabulary");
}

}  // namespace gyre::fuzz
