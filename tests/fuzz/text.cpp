// Texts, compressed or not: JSON lines or documents between separators, depending on the first byte. Documents that are
// not refused are UTF-8.
#include <algorithm>

#include "fuzz/memory_file.h"
#include "fuzz/targets.h"
#include "gyre/core/utf8.h"
#include "gyre/data/byte_source.h"
#include "gyre/data/text_reader.h"

namespace gyre::fuzz {

void text(std::string_view input) {
  if (input.empty()) return;
  const TextLayout layout{"input", input.front() == 'j', "text", input.front() == 's' ? "--" : ""};
  input.remove_prefix(1);
  const MemoryFile content(input);
  ::lseek(content.descriptor(), 0, SEEK_SET);
  accepted([&] {
    const auto bytes = open_bytes(content.descriptor(), "input");
    TextReader reader(*bytes, layout);
    constexpr int kMostChunks = 16;  // compressed text may be endless
    for (int chunks = 0; chunks < kMostChunks; ++chunks) {
      const auto chunk = reader.next();
      if (!chunk) break;
      for_each_part(*chunk, layout, [](const TextPart& part) {
        Utf8Checker checker;
        require(!checker.check(part.text), "documents are UTF-8");
      });
    }
    return true;
  });
}

}  // namespace gyre::fuzz
