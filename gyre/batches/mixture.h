// Which source of a mixture each sequence is from.
#pragma once

#include <cstdint>
#include <vector>

namespace gyre {

// A pattern of 65,536 sequences that comes again and again: in each every source has its share exactly, rounded, but
// one sequence at least. The order within is drawn by the seed.
class Mixture {
 public:
  Mixture(const std::vector<double>& weights, int64_t seed);

  struct Draw {
    size_t source = 0;
    uint64_t number = 0;  // how many of the source's came before
  };
  Draw at(uint64_t sequence) const;

 private:
  std::vector<uint64_t> shares_;
  std::vector<uint16_t> sources_;  // of the pattern's sequences
  std::vector<uint16_t> numbers_;  // how many of the same source stand before in the pattern
};

}  // namespace gyre
