#include "gyre/runtime/shards.h"

#include <algorithm>

#include "gyre/tensors/flat_buffer.h"

namespace gyre {
namespace {

// Fills shards in turn, each up to `most` elements.
std::vector<Shard> fill(std::span<const int64_t> sizes, int64_t most) {
  std::vector<Shard> shards(1);
  for (const int64_t size : sizes) {
    if (shards.back().elements + size > most) {
      const Shard& full = shards.back();
      shards.push_back({full.end, full.end, full.offset + full.elements, 0});
    }
    ++shards.back().end;
    shards.back().elements += size;
  }
  return shards;
}

}  // namespace

std::vector<Shard> cut_into_shards(std::span<const ParameterSpec> stage, int count) {
  std::vector<int64_t> sizes;
  for (const ParameterSpec& spec : stage) sizes.push_back(flat_elements({&spec, 1}));
  int64_t total = 0, least = 0;
  for (const int64_t size : sizes) {
    total += size;
    least = std::max(least, size);
  }
  // The smallest bound that `count` shards can keep, by bisection: the number of shards falls as the bound grows.
  for (int64_t most = total; least < most;) {
    const int64_t middle = least + (most - least) / 2;
    if (std::ssize(fill(sizes, middle)) <= count) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  std::vector<Shard> shards = fill(sizes, least);
  shards.resize(static_cast<size_t>(count), {sizes.size(), sizes.size(), total, 0});
  return shards;
}

}  // namespace gyre
