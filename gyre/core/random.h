// Counter-based random streams (Philox4x32-10; Salmon et al., SC 2011). A stream is a pure function of its key, so any
// executor, in any order, on any worker, draws the same numbers. No state is shared and none is saved in checkpoints.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "gyre/core/philox.h"

namespace gyre {

// What a stream is for; part of its key, so that streams of different use never overlap.
enum class StreamPurpose : uint32_t {
  Initialization = 1,
  Batches = 2,
  Dropout = 3,
  Sampling = 4,
  Masking = 5,
  Sketch = 6,
  Diagnostics = 7,
  Split = 8,
  Mixture = 9,
  Epochs = 10,
  Test = 99
};

// One block of the generator, as published: ten rounds over the counter. Inline, so that the compiler makes a loop over
// blocks one over vectors of blocks.
[[gnu::always_inline]] inline std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter,
                                                                    std::array<uint32_t, 2> key) {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxFactors[0]} * c0;
    const uint64_t p1 = uint64_t{kPhiloxFactors[1]} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kPhiloxKeySteps[0];
    k1 += kPhiloxKeySteps[1];
  }
  return {c0, c1, c2, c3};
}

// One stream: key = (seed, purpose), counter = (index, sub, block). `index` is the microbatch, the parameter's hashed
// name or the like; `sub` the layer or sequence. A stream holds 2^34 32-bit numbers.
class RandomStream {
 public:
  RandomStream(uint64_t seed, StreamPurpose purpose, uint64_t index, uint32_t sub = 0);

  // The four 32-bit numbers of one block of the counter: random access, for generators that run in parallel.
  std::array<uint32_t, 4> block(uint32_t number) const;
  // The counter value from which block `number` is computed.
  std::array<uint32_t, 4> counter(uint32_t number) const;
  std::array<uint32_t, 2> key() const { return key_; }

  uint32_t next_u32();
  uint64_t next_u64();
  // Uniform in [0, 1), 53 bits.
  double uniform();
  // Uniform integer in [0, bound), without modulo bias. bound > 0.
  uint64_t below(uint64_t bound);
  // Fills `out` with standard normals (Box-Muller) times `deviation`; starts at a new block, so it skips what is left
  // of the current one.
  void fill_normal(std::span<float> out, float deviation);

 private:
  std::array<uint32_t, 2> key_;
  uint32_t sub_;
  uint64_t index_;
  uint32_t next_block_ = 0;
  std::array<uint32_t, 4> buffer_{};
  int used_ = 4;
};

// A stable 64-bit hash of a name (XXH3), for keying streams by parameter name.
uint64_t stable_hash(std::string_view text);

}  // namespace gyre
