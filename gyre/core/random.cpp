#include "gyre/core/random.h"

#include <cmath>
#include <numbers>

namespace gyre {
namespace {

// SplitMix64's finaliser: spreads (seed, purpose) over the 64 bits of the Philox key.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, StreamPurpose purpose, uint64_t index, uint32_t sub)
    : sub_(sub), index_(index) {
  const uint64_t key = mix(mix(seed) ^ static_cast<uint64_t>(purpose));
  key_[0] = static_cast<uint32_t>(key);
  key_[1] = static_cast<uint32_t>(key >> 32);
}

std::array<uint32_t, 4> RandomStream::block(uint32_t number) const {
  return philox4x32_10(counter(number), key_);
}

std::array<uint32_t, 4> RandomStream::counter(uint32_t number) const {
  return {number, sub_, static_cast<uint32_t>(index_), static_cast<uint32_t>(index_ >> 32)};
}

uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    buffer_ = block(next_block_++);
    used_ = 0;
  }
  return buffer_[used_++];
}

uint64_t RandomStream::next_u64() {
  const uint64_t low = next_u32();
  return low | (uint64_t{next_u32()} << 32);
}

double RandomStream::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
}

uint64_t RandomStream::below(uint64_t bound) {
  // Reject draws from the largest multiple of `bound` up: that tail would bias the remainder.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t draw = next_u64();
  while (draw >= limit) draw = next_u64();
  return draw % bound;
}

void RandomStream::fill_normal(std::span<float> out, float deviation) {
  for (size_t i = 0; i < out.size(); i += 4) {
    const auto bits = block(next_block_++);
    float normals[4];
    for (int pair = 0; pair < 4; pair += 2) {
      // u in (0, 1], so that the logarithm is finite.
      const float u = (static_cast<float>(bits[pair] >> 8) + 1.0f) * 0x1.0p-24f;
      const float angle = 2.0f * std::numbers::pi_v<float> * (static_cast<float>(bits[pair + 1] >> 8) * 0x1.0p-24f);
      const float radius = std::sqrt(-2.0f * std::log(u));
      normals[pair] = radius * std::cos(angle);
      normals[pair + 1] = radius * std::sin(angle);
    }
    for (size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = deviation * normals[j];
  }
  used_ = 4;
}

}  // namespace gyre
