// Token files, read from a file in memory: an accepted one can be read to its last token.
#include "gyre/data/token_file.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/memory_file.h"
#include "fuzz/targets.h"

namespace gyre::fuzz {

void token_file(std::string_view input) {
  const MemoryFile content(input);
  const auto file = accepted([&] { return TokenFile(content.path()); });
  if (!file) return;
  require(file->size() <= static_cast<int64_t>(input.size()), "no more tokens than bytes");
  constexpr int64_t kVocabulary = 1000;
  if (file->scan(kVocabulary).outside_at >= 0) return;
  std::vector<int64_t> tokens(static_cast<size_t>(file->size()));
  file->read(0, tokens, kVocabulary);
  const bool known = std::all_of(tokens.begin(), tokens.end(), [&](int64_t t) { return t >= 0 && t < kVocabulary; });
  require(known, "tokens are of the vocabulary");
}

}  // namespace gyre::fuzz
