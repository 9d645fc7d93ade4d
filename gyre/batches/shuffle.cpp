#include "gyre/batches/shuffle.h"

#include <bit>

#include "gyre/core/random.h"

namespace gyre {

uint64_t shuffled(uint64_t place, uint64_t size, uint64_t seed, uint64_t epoch, uint32_t sub) {
  if (size <= 1) return 0;
  constexpr int kRounds = 6;
  const RandomStream stream(seed, StreamPurpose::Epochs, epoch, sub);
  const int half = (std::bit_width(size - 1) + 1) / 2;  // number of bits
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = place >> half, right = place & mask;
    for (int round = 0; round < kRounds; ++round) {
      // A block of the stream has four numbers, and each value of a half needs six: two blocks. A half fits 31 bits.
      const auto block = stream.block(static_cast<uint32_t>(2 * right) + static_cast<uint32_t>(round / 4));
      const uint64_t mixed = left ^ (block[static_cast<size_t>(round % 4)] & mask);
      left = right;
      right = mixed;
    }
    place = left << half | right;
  } while (place >= size);
  return place;
}

}  // namespace gyre
