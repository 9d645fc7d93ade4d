// A shuffled order that is computed for one place at a time: nothing is kept of it, however long it is.
#pragma once

#include <cstdint>

namespace gyre {

// Which of 0 .. size - 1 stands at `place` of a random order of them, one order for each (seed, epoch, sub). A Feistel
// network over the smallest power of four that holds them, gone through again while it leads outside.
uint64_t shuffled(uint64_t place, uint64_t size, uint64_t seed, uint64_t epoch, uint32_t sub);

}  // namespace gyre
