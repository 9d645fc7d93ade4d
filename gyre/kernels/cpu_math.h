// Building blocks of loops over fp32 and bf16 rows on the CPU, written so that the compiler vectorises them:
// conversions without branches, exponentials without calls, and sums over sixteen fixed lanes, so that the vector width
// does not change the order of additions.
//
// GYRE_CPU_KERNEL marks a function that is compiled once per vector width; the widest that the machine supports is
// used. Functions that it calls must be GYRE_INLINE.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

// The version is chosen while the program is loaded, before the thread sanitizer is initialised, so there are no clones
// with it. x86-64-v4 is AVX-512 with the instructions for 16-bit integers, without which loops over bf16 use half the
// width.
#ifdef __SANITIZE_THREAD__
#define GYRE_CPU_KERNEL
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define GYRE_CPU_KERNEL __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define GYRE_CPU_KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define GYRE_INLINE inline __attribute__((always_inline))

namespace gyre::cpu {

// Whether a loop can treat its memory as an array of `type` on the CPU.
inline bool is_plain(const at::Tensor& x, at::ScalarType type) {
  return x.is_cpu() && x.scalar_type() == type && x.is_contiguous();
}

// Whether x, (batch, heads, positions, size) and possibly a view, is on the CPU and has rows of `size` contiguous
// elements.
inline bool has_whole_rows(const at::Tensor& x) {
  return x.is_cpu() && x.dim() == 4 && x.stride(3) == 1;
}

inline constexpr int kLanes = 16;
// A vector type for maxima: GCC does not vectorise conditional moves between array elements, as it does additions.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

GYRE_INLINE float load(const float* x) {
  return *x;
}
GYRE_INLINE float load(const c10::BFloat16* x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x->x) << 16);
}
GYRE_INLINE void store(float* to, float value) {
  *to = value;
}
// Rounds to nearest, ties to even. NaNs that arithmetic produces stay NaNs; a NaN with other payload bits may become
// infinity or 0.
GYRE_INLINE void store(c10::BFloat16* to, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  to->x = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// x after rounding to type T.
template <typename T>
GYRE_INLINE float rounded(float x) {
  T narrow;
  store(&narrow, x);
  return load(&narrow);
}

// Two adjacent bf16 values, read as one 32-bit word: a shift and a mask convert them to fp32. A loop over single values
// needs permutations, and its fp32 vectors have only half the machine's width.
struct Two {
  float first, second;
};
GYRE_INLINE Two load_two(const c10::BFloat16* x) {
  uint32_t word = 0;
  std::memcpy(&word, x, sizeof word);
  return {std::bit_cast<float>(word << 16), std::bit_cast<float>(word & 0xFFFF0000u)};
}
// Rounds as store does.
GYRE_INLINE void store_two(c10::BFloat16* to, const Two& value) {
  const auto rounded = [](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return bits + 0x7FFFu + ((bits >> 16) & 1u);
  };
  const uint32_t word = (rounded(value.first) >> 16) | (rounded(value.second) & 0xFFFF0000u);
  std::memcpy(static_cast<void*>(to), &word, sizeof word);
}

// e^x for x <= 0, relative error below 2e-7: 2^n times a polynomial of the remainder. x is clamped to -87.
GYRE_INLINE float exp_negative(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
  x = x < -87.0f ? -87.0f : x;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

// 2^x for x <= 0, relative error below 3e-7: a polynomial of the remainder, with n added to its exponent. x is clamped
// to -125. Cheaper than exp_negative if the factor log2(e) can be folded into x.
GYRE_INLINE float exp2_negative(float x) {
  constexpr float kRound = 12582912.0f;  // as above; `shifted` has n in its low bits
  x = x < -125.0f ? -125.0f : x;
  const float shifted = x + kRound;
  const float r = x - (shifted - kRound);
  float p = 1.3276472e-3f;
  p = p * r + 9.6755418e-3f;
  p = p * r + 5.5507133e-2f;
  p = p * r + 2.4022120e-1f;
  p = p * r + 6.9314697e-1f;
  p = p * r + 1.0000001f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(shifted) << 23));
}

// `count` rounded up to a multiple of kLanes.
inline constexpr int64_t whole_lanes(int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

// body(i) for i in [0, count), count a multiple of kLanes. Without that, the compiler's remainder loop would cost as
// much as the vector loop of a short row.
template <typename Body>
GYRE_INLINE void for_lanes(int64_t count, Body body) {
  for (int64_t i = 0; i < count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(i + lane);
  }
}

using HalfLanes = float __attribute__((vector_size(kLanes / 2 * sizeof(float))));
using QuarterLanes = float __attribute__((vector_size(kLanes / 4 * sizeof(float))));

// The sum of all lanes, by halving.
GYRE_INLINE float total(const Lanes& lanes) {
  std::array<HalfLanes, 2> halves;
  std::memcpy(halves.data(), &lanes, sizeof lanes);
  halves[0] += halves[1];
  std::array<QuarterLanes, 2> quarters;
  std::memcpy(quarters.data(), halves.data(), sizeof quarters);
  quarters[0] += quarters[1];
  return (quarters[0][0] + quarters[0][2]) + (quarters[0][1] + quarters[0][3]);
}
GYRE_INLINE float total(const std::array<float, kLanes>& lanes) {
  Lanes copy;
  std::memcpy(&copy, lanes.data(), sizeof copy);
  return total(copy);
}

GYRE_INLINE float largest(const Lanes& lanes) {
  std::array<HalfLanes, 2> halves;
  std::memcpy(halves.data(), &lanes, sizeof lanes);
  halves[0] = halves[0] > halves[1] ? halves[0] : halves[1];
  std::array<QuarterLanes, 2> quarters;
  std::memcpy(quarters.data(), halves.data(), sizeof quarters);
  const QuarterLanes max = quarters[0] > quarters[1] ? quarters[0] : quarters[1];
  const float even = max[0] > max[2] ? max[0] : max[2], odd = max[1] > max[3] ? max[1] : max[3];
  return even > odd ? even : odd;
}

// Sum of term(i) for i in [0, count).
template <typename Term>
GYRE_INLINE float lane_sum(int64_t count, Term term) {
  std::array<float, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += term(i + lane);
  }
  for (int lane = 0; i < count; ++i, ++lane) sums[lane] += term(i);
  return total(sums);
}

// The largest of x[0, count), count a positive multiple of kLanes.
GYRE_INLINE float lane_max(const float* x, int64_t count) {
  Lanes max, next;
  std::memcpy(&max, x, sizeof max);
  for (int64_t i = kLanes; i < count; i += kLanes) {
    std::memcpy(&next, x + i, sizeof next);
    max = next > max ? next : max;
  }
  return largest(max);
}

// Copies `count` values of x to `to`, as fp32, and pads to whole lanes with the lowest float, which does not change a
// maximum and whose exponential adds nothing to a sum.
template <typename T>
GYRE_INLINE void load_row(const T* x, float* __restrict to, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  for_lanes(whole, [=](int64_t i) { to[i] = load(x + i); });
  for (int64_t i = whole; i < count; ++i) to[i] = load(x + i);
  for (int64_t i = count; i < whole_lanes(count); ++i) to[i] = std::numeric_limits<float>::lowest();
}

}  // namespace gyre::cpu
