// A weight, whole or in halves (split_weight.h), in loops over memory on the CPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gyre/kernels/cpu_math.h"
#include "gyre/optim/parameter/split_weight.h"

namespace gyre {

// A weight that is one tensor, as a loop reads and writes it.
struct WholeElements {
  float* w;
  explicit WholeElements(const at::Tensor& weight) : w(weight.data_ptr<float>()) {}
  WholeElements from(int64_t i) const {
    WholeElements rest = *this;
    rest.w += i;
    return rest;
  }
  GYRE_INLINE float load(int64_t i) const { return w[i]; }
  GYRE_INLINE void store(int64_t i, float value) const { w[i] = value; }
};

// A weight in halves, likewise. Loops read element i, then write it: the next version may be where the last one is, so
// no pointer is __restrict, and a loop needs `#pragma GCC ivdep` to become vectors.
struct SplitElements {
  const c10::BFloat16* version;
  int16_t* rest;
  c10::BFloat16* next;

  explicit SplitElements(const SplitWeight& weight)
      : version(weight.version.data_ptr<c10::BFloat16>()),
        rest(weight.rest.data_ptr<int16_t>()),
        next(weight.next.data_ptr<c10::BFloat16>()) {}

  // Those from element i on.
  SplitElements from(int64_t i) const {
    SplitElements rest_of_them = *this;
    rest_of_them.version += i;
    rest_of_them.rest += i;
    rest_of_them.next += i;
    return rest_of_them;
  }

  GYRE_INLINE float load(int64_t i) const {
    const uint32_t high = static_cast<uint32_t>(version[i].x) << 16;
    return std::bit_cast<float>(high + static_cast<uint32_t>(static_cast<int32_t>(rest[i])));
  }
  GYRE_INLINE void store(int64_t i, float value) const {
    auto bits = std::bit_cast<uint32_t>(value);
    bits -= (bits & 0x1FFFFu) == 0x8000u ? 1 : 0;  // in the middle, above a version that is even
    next[i].x = static_cast<uint16_t>((bits + 0x8000u) >> 16);
    rest[i] = static_cast<int16_t>(bits);
  }
};

// Whether a loop can go through all of it as arrays.
inline bool is_plain(const at::Tensor& weight) {
  return cpu::is_plain(weight, at::kFloat);
}
inline bool is_plain(const SplitWeight& weight) {
  return cpu::is_plain(weight.version, at::kBFloat16) && cpu::is_plain(weight.rest, at::kShort) &&
         cpu::is_plain(weight.next, at::kBFloat16);
}

// As a loop takes it.
inline WholeElements elements_of(const at::Tensor& weight) {
  return WholeElements(weight);
}
inline SplitElements elements_of(const SplitWeight& weight) {
  return SplitElements(weight);
}

}  // namespace gyre
