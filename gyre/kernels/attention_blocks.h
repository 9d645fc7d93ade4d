// How attention is cut within a head: into blocks of queries, each with the keys that it sees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gyre {

// Queries per block. Smaller blocks skip more of the scores that a causal mask hides, but make smaller matrix products.
inline constexpr int64_t kBlockQueries = 128;

// Rows [first, first + rows) of a head's scores, and the keys that they see: [0, seen).
struct AttentionBlock {
  int64_t first = 0, rows = 0, seen = 0;
};

// All blocks of a head, from the last one, which sees all keys, to the first.
inline std::vector<AttentionBlock> attention_blocks(int64_t context, bool causal) {
  std::vector<AttentionBlock> blocks;
  for (int64_t first = (context - 1) / kBlockQueries * kBlockQueries; first >= 0; first -= kBlockQueries) {
    const int64_t rows = std::min(kBlockQueries, context - first);
    blocks.push_back({first, rows, causal ? first + rows : context});
  }
  return blocks;
}

// The factor 1 / sqrt(size) of the scores. size: elements of a head.
inline double attention_scale(int64_t size) {
  return 1.0 / std::sqrt(static_cast<double>(size));
}

}  // namespace gyre
