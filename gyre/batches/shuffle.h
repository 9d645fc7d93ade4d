// A shuffled order that is computed for one place at a time, so that it needs no memory.
#pragma once

#include <cstdint>

namespace gyre {

// The number at `place` in a random order of 0 .. size - 1, with one order for each (seed, epoch, sub). A Feistel
// network permutes the smallest power of four that is at least `size`; it is applied again while the result is not
// below `size`.
uint64_t shuffled(uint64_t place, uint64_t size, uint64_t seed, uint64_t epoch, uint32_t sub);

}  // namespace gyre
