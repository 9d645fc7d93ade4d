// Decides which source of a mixture each sequence comes from.
#pragma once

#include <cstdint>
#include <vector>

namespace gyre {

// Repeats a pattern of 65,536 sequences in which every source has exactly its share, rounded, but at least one
// sequence. The order within the pattern is drawn by the seed.
class Mixture {
 public:
  Mixture(const std::vector<double>& weights, int64_t seed);

  struct Draw {
    size_t source = 0;
    uint64_t number = 0;  // how many sequences of this source came before
  };
  Draw at(uint64_t sequence) const;

 private:
  std::vector<uint64_t> shares_;
  std::vector<uint16_t> sources_;  // source of each sequence in the pattern
  std::vector<uint16_t> numbers_;  // how many of the same source come before it in the pattern
};

}  // namespace gyre
