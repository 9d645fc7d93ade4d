// Activation functions of one element, and their slopes, for loops that the compiler vectorises: in fp32 as accurate as
// fp32 allows, in bf16 cheaper. Huge values do not overflow in fp32.
#pragma once

#include <c10/util/BFloat16.h>

#include <algorithm>

#include "gyre/kernels/cpu_math.h"

namespace gyre::cpu {

// f(x) and f'(x).
struct Point {
  float value, slope;
};

// e^-x for x >= 0, and 0 from 87 on.
GYRE_INLINE float exp_minus(float x) {
  const float y = exp_negative(-x);
  return x > 87.0f ? 0.0f : y;
}

// The functions that a tensor's type T needs.
template <typename T>
struct Gelu;
template <typename T>
struct GeluTanh;
template <typename T>
struct Silu;

// NaN stays NaN.
template <typename T>
struct Relu {
  GYRE_INLINE static Point at(float x) { return {x < 0 ? 0.0f : x, x <= 0 ? 0.0f : 1.0f}; }
};

// x Phi(x), with Phi(x) = (1 + erf(x / sqrt 2)) / 2. The tail 1 - Phi(|x|) is e^(-x^2 / 2), which the slope needs too,
// as the density, times t p(1 - t), with t = 1 / (1 + 0.3 |x| / sqrt 2): as erfc behaves for large |x|. The polynomial
// p, fitted by Remez's algorithm, has a relative error below 4e-8 up to |x| = 19. In powers of 1 - t, which is known
// well where t is near 1.
template <>
struct Gelu<float> {
  GYRE_INLINE static Point at(float x) {
    constexpr float kBySqrtTwoPi = 0.39894228f;
    const float density = exp_minus(0.5f * x * x);
    const float scaled = 0.21213203f * (x < 0 ? -x : x), t = 1.0f / (1.0f + scaled), w = scaled * t;
    float p = -0.06361375f;
    p = p * w + 0.27155399f;
    p = p * w - 0.36493055f;
    p = p * w - 0.21240826f;
    p = p * w + 1.44540804f;
    p = p * w - 2.40503109f;
    p = p * w + 2.29425425f;
    p = p * w - 1.38063193f;
    p = p * w + 0.50000002f;
    const float tail = p * t * density;
    const float phi = x < 0 ? tail : 1.0f - tail;
    return {x * phi, phi + x * (density * kBySqrtTwoPi)};
  }
};

// The same by Abramowitz and Stegun 7.1.26. The absolute error of Phi is below 1e-7, a thousandth of bf16's rounding
// error near 1; where Phi is small, its relative error is larger.
template <>
struct Gelu<c10::BFloat16> {
  GYRE_INLINE static Point at(float x) {
    constexpr float kBySqrtTwo = 0.70710678f, kBySqrtTwoPi = 0.39894228f, kHalfByTwo = 0.72134752f;  // log2(e) / 2
    const float size = x < 0 ? -x : x;
    const float density = exp2_negative(-kHalfByTwo * x * x);
    const float t = 1.0f / (1.0f + 0.3275911f * kBySqrtTwo * size);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const float tail = 0.5f * p * t * density;
    const float phi = x < 0 ? tail : 1.0f - tail;
    return {x * phi, phi + x * density * kBySqrtTwoPi};
  }
};

// The logistic function of x, and its slope without cancellation.
GYRE_INLINE Point sigmoid(float x) {
  const float small = exp_minus(x < 0 ? -x : x), large = 1.0f / (1.0f + small);
  return {(x < 0 ? small : 1.0f) * large, small * large * large};
}
GYRE_INLINE float sigmoid_for_bf16(float x) {
  const float small = exp2_negative(1.44269504f * (x < 0 ? x : -x));  // log2(e)
  return (x < 0 ? small : 1.0f) / (1.0f + small);
}

// x sigmoid(2 u) = x (1 + tanh u) / 2, with u = sqrt(2 / pi) (x + 0.044715 x^3). The bound of x^2 keeps u's slope
// finite where that of the sigmoid is 0.
template <>
struct GeluTanh<float> {
  GYRE_INLINE static Point at(float x) {
    constexpr float kFactor = 2 * 0.79788456f, kCubic = 0.044715f;
    const float square = std::min(x * x, 1e4f);
    const Point s = sigmoid(kFactor * x * (1.0f + kCubic * square));
    return {x * s.value, s.value + x * (s.slope * (kFactor + 3 * kFactor * kCubic * square))};
  }
};
template <>
struct GeluTanh<c10::BFloat16> {
  GYRE_INLINE static Point at(float x) {
    constexpr float kFactor = 2 * 0.79788456f, kCubic = 0.044715f;
    const float s = sigmoid_for_bf16(kFactor * (x + kCubic * x * x * x));
    return {x * s, s + x * s * (1.0f - s) * kFactor * (1.0f + 3 * kCubic * x * x)};
  }
};

template <>
struct Silu<float> {
  GYRE_INLINE static Point at(float x) {
    const Point s = sigmoid(x);
    return {x * s.value, s.value + x * s.slope};
  }
};
template <>
struct Silu<c10::BFloat16> {
  GYRE_INLINE static Point at(float x) {
    const float s = sigmoid_for_bf16(x);
    return {x * s, s + x * s * (1.0f - s)};
  }
};

}  // namespace gyre::cpu
