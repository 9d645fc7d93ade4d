// Megatron's indexes. The first eight bytes of the input are the length of the .bin; now and then it does not fit the
// index.
#include "gyre/data/megatron_index.h"

#include <cstring>

#include "fuzz/memory_file.h"
#include "fuzz/targets.h"

namespace gyre::fuzz {

void megatron_index(std::string_view input) {
  uint64_t token_bytes = 0;
  if (input.size() < sizeof(token_bytes)) return;
  std::memcpy(&token_bytes, input.data(), sizeof(token_bytes));
  const MemoryFile content(input.substr(sizeof(token_bytes)));
  const auto layout = accepted([&] { return read_megatron_index(InputFile(content.path()), "input", token_bytes); });
  if (!layout) return;
  require(static_cast<uint64_t>(layout->size) * width_of(layout->type) == token_bytes, "the index is the .bin's");
  require(layout->offset == 0, "tokens begin at once");
}

}  // namespace gyre::fuzz
