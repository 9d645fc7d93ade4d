// Indexes of tensors in several files.
#include "fuzz/targets.h"
#include "gyre/checkpoint/format/shards.h"

namespace gyre::fuzz {

void shard_index(std::string_view input) {
  const auto index = accepted([&] { return parse_shard_index(input); });
  if (index) require(parse_shard_index(to_text(*index)) == *index, "an index comes back the same");
}

}  // namespace gyre::fuzz
