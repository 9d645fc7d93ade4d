#include "gyre/kernels/activation.h"

#include <ATen/ATen.h>

#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

using Bf16 = c10::BFloat16;
using cpu::LanePair;
using cpu::Lanes;

GYRE_INLINE void exp2_negative(const Lanes& x, Lanes& result) {
  cpu::exp2_negative<cpu::LaneBits, Lanes>(x, result);
}

// f(x) and f'(x).
struct Point {
  Lanes value, slope;
};

// x Phi(x), with Phi(x) = (1 + erf(x / sqrt 2)) / 2. What lies beyond |x| is a polynomial of 1 / (1 + c |x|) times
// e^(-x^2 / 2), which is also the density that the slope needs: Abramowitz and Stegun 7.1.26, error of Phi below 1e-7,
// a thousandth of what bf16 rounds away.
struct Gelu {
  GYRE_INLINE static void at(const Lanes& x, Point& f) {
    constexpr float kBySqrtTwo = 0.70710678f, kBySqrtTwoPi = 0.39894228f, kHalfLog2e = 0.72134752f;
    const Lanes size = x < 0 ? -x : x;
    Lanes falling;
    exp2_negative(-kHalfLog2e * x * x, falling);
    const Lanes t = 1.0f / (1.0f + 0.3275911f * kBySqrtTwo * size);
    Lanes p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const Lanes tail = 0.5f * p * t * falling;
    const Lanes phi = x < 0 ? tail : 1.0f - tail;
    f.value = x * phi;
    f.slope = phi + x * falling * kBySqrtTwoPi;
  }
};

GYRE_INLINE void sigmoid(const Lanes& x, Lanes& result) {
  Lanes small;
  exp2_negative((x < 0 ? x : -x) * 1.44269504f, small);
  result = (x < 0 ? small : 1.0f) / (1.0f + small);
}

// x sigmoid(2 u) = x (1 + tanh u) / 2, with u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  GYRE_INLINE static void at(const Lanes& x, Point& f) {
    constexpr float kFactor = 2 * 0.79788456f, kCubic = 0.044715f;
    Lanes s;
    sigmoid(kFactor * (x + kCubic * x * x * x), s);
    f.value = x * s;
    f.slope = s + x * s * (1.0f - s) * kFactor * (1.0f + 3 * kCubic * x * x);
  }
};

struct Silu {
  GYRE_INLINE static void at(const Lanes& x, Point& f) {
    Lanes s;
    sigmoid(x, s);
    f.value = x * s;
    f.slope = s + x * s * (1.0f - s);
  }
};

// of(i, count, there) for each pair of lanes of [0, n): `count` values of it are below n, and `there` from i on.
template <typename OfPair>
GYRE_INLINE void for_pairs(int64_t n, OfPair of) {
  int64_t i = 0;
  for (; i + LanePair::kSize <= n; i += LanePair::kSize) of(i, LanePair::kSize, LanePair::kSize);
  if (i < n) of(i, n - i, n - i);
}

template <typename Function>
GYRE_INLINE void value_of(LanePair& x) {
  Point f;
  Function::at(x.a, f);
  x.a = f.value;
  Function::at(x.b, f);
  x.b = f.value;
}

template <typename Function>
GYRE_INLINE void forward_loop(const Bf16* x, Bf16* y, int64_t count) {
  for_pairs(count, [=](int64_t i, int64_t number, int64_t there) GYRE_INLINE_BODY {
    LanePair of;
    cpu::load_rest(x + i, number, there, of);
    value_of<Function>(of);
    cpu::store_rest(y + i, number, there, of);
  });
}

// x becomes f(x), grad its gradient.
template <typename Function>
GYRE_INLINE void turn_back(Lanes& x, Lanes& grad) {
  Point f;
  Function::at(x, f);
  x = f.value;
  grad *= f.slope;
}

template <typename Function>
GYRE_INLINE void backward_loop(const Bf16* grad, const Bf16* x, Bf16* grad_x, Bf16* y, int64_t count) {
  for_pairs(count, [=](int64_t i, int64_t number, int64_t there) GYRE_INLINE_BODY {
    LanePair of, g;
    cpu::load_rest(x + i, number, there, of);
    cpu::load_rest(grad + i, number, there, g);
    turn_back<Function>(of.a, g.a);
    turn_back<Function>(of.b, g.b);
    cpu::store_rest(y + i, number, there, of);
    cpu::store_rest(grad_x + i, number, there, g);
  });
}

// Rows of 2 n: the gate, then what it gates. What the portable path rounds on its way to memory is rounded, so that
// both give the same bits.
template <typename Function>
GYRE_INLINE void gated_forward_loop(const Bf16* x, Bf16* y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, x += 2 * n, y += n) {
    for_pairs(n, [=](int64_t i, int64_t number, int64_t there) GYRE_INLINE_BODY {
      LanePair gate, up;
      cpu::load_rest(x + i, number, there, gate);
      cpu::load_rest(x + n + i, number, there, up);
      value_of<Function>(gate);
      cpu::round_lanes(gate.a);
      cpu::round_lanes(gate.b);
      gate.a *= up.a;
      gate.b *= up.b;
      cpu::store_rest(y + i, number, there, gate);
    });
  }
}

// gate becomes the product, up the gradient by itself, grad that by the gate.
template <typename Function>
GYRE_INLINE void turn_gate_back(Lanes& gate, Lanes& up, Lanes& grad) {
  Lanes value = gate, by_gate = grad * up;
  cpu::round_lanes(by_gate);
  turn_back<Function>(value, by_gate);
  cpu::round_lanes(value);
  gate = value * up;
  up = value * grad;
  grad = by_gate;
}

template <typename Function>
GYRE_INLINE void gated_backward_loop(const Bf16* grad, const Bf16* x, Bf16* grad_x, Bf16* y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, grad += n, x += 2 * n, grad_x += 2 * n, y += n) {
    for_pairs(n, [=](int64_t i, int64_t number, int64_t there) GYRE_INLINE_BODY {
      LanePair gate, up, g;
      cpu::load_rest(x + i, number, there, gate);
      cpu::load_rest(x + n + i, number, there, up);
      cpu::load_rest(grad + i, number, there, g);
      turn_gate_back<Function>(gate.a, up.a, g.a);
      turn_gate_back<Function>(gate.b, up.b, g.b);
      cpu::store_rest(y + i, number, there, gate);
      cpu::store_rest(grad_x + i, number, there, g);
      cpu::store_rest(grad_x + n + i, number, there, up);
    });
  }
}

#define GYRE_ACTIVATION(Function)                                                                                     \
  GYRE_CPU_KERNEL void forward_kernel(Function, const Bf16* x, Bf16* y, int64_t count) {                              \
    forward_loop<Function>(x, y, count);                                                                              \
  }                                                                                                                   \
  GYRE_CPU_KERNEL void backward_kernel(Function, const Bf16* grad, const Bf16* x, Bf16* grad_x, Bf16* y, int64_t n) { \
    backward_loop<Function>(grad, x, grad_x, y, n);                                                                   \
  }                                                                                                                   \
  GYRE_CPU_KERNEL void gated_forward_kernel(Function, const Bf16* x, Bf16* y, int64_t rows, int64_t n) {              \
    gated_forward_loop<Function>(x, y, rows, n);                                                                      \
  }                                                                                                                   \
  GYRE_CPU_KERNEL void gated_backward_kernel(Function, const Bf16* grad, const Bf16* x, Bf16* grad_x, Bf16* y,        \
                                             int64_t rows, int64_t n) {                                               \
    gated_backward_loop<Function>(grad, x, grad_x, y, rows, n);                                                       \
  }
GYRE_ACTIVATION(Gelu)
GYRE_ACTIVATION(GeluTanh)
GYRE_ACTIVATION(Silu)
#undef GYRE_ACTIVATION

// `then` with the function that is fast here, and true; false: there is none.
template <typename Then>
bool with_kernel(const at::Tensor& x, Activation activation, Then then) {
  if (!cpu::is_plain(x, at::kBFloat16)) return false;
  switch (activation) {
    case Activation::Gelu:
      then(Gelu{});
      return true;
    case Activation::GeluTanh:
      then(GeluTanh{});
      return true;
    case Activation::Silu:
      then(Silu{});
      return true;
    case Activation::Relu:
      return false;
  }
  return false;
}

// (..., 2 n) -> (..., n)
std::vector<int64_t> half_of(const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() /= 2;
  return sizes;
}

}  // namespace

at::Tensor activate(const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  at::Tensor y;
  const bool done = with_kernel(x, activation, [&](auto function) {
    y = at::empty(x.sizes(), x.options());
    forward_kernel(function, x.data_ptr<c10::BFloat16>(), y.data_ptr<c10::BFloat16>(), x.numel());
  });
  return done ? y : portable::activate(x, activation);
}

ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  ActivationBackward result;
  const bool done =
      cpu::is_plain(grad, at::kBFloat16) && with_kernel(x, activation, [&](auto function) {
        result = {at::empty(x.sizes(), x.options()), at::empty(x.sizes(), x.options())};
        backward_kernel(function, grad.data_ptr<c10::BFloat16>(), x.data_ptr<c10::BFloat16>(),
                        result.grad.data_ptr<c10::BFloat16>(), result.output.data_ptr<c10::BFloat16>(), x.numel());
      });
  return done ? result : portable::activate_backward(grad, x, activation);
}

at::Tensor gated_activate(const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  at::Tensor y;
  const bool done = with_kernel(x, activation, [&](auto function) {
    const int64_t size = x.size(-1) / 2;
    y = at::empty(half_of(x), x.options());
    gated_forward_kernel(function, x.data_ptr<c10::BFloat16>(), y.data_ptr<c10::BFloat16>(), x.numel() / (2 * size),
                         size);
  });
  return done ? y : portable::gated_activate(x, activation);
}

ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  ActivationBackward result;
  const bool done = cpu::is_plain(grad, at::kBFloat16) && with_kernel(x, activation, [&](auto function) {
                      const int64_t size = x.size(-1) / 2;
                      result = {at::empty(x.sizes(), x.options()), at::empty(half_of(x), x.options())};
                      gated_backward_kernel(function, grad.data_ptr<c10::BFloat16>(), x.data_ptr<c10::BFloat16>(),
                                            result.grad.data_ptr<c10::BFloat16>(),
                                            result.output.data_ptr<c10::BFloat16>(), x.numel() / (2 * size), size);
                    });
  return done ? result : portable::gated_activate_backward(grad, x, activation);
}

namespace portable {

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      return at::gelu(x, "none");
    case Activation::GeluTanh:
      return at::gelu(x, "tanh");
    case Activation::Relu:
      return at::clamp_min(x, 0);
    case Activation::Silu:
      return at::silu(x);
  }
  return {};
}

ActivationBackward activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      return {at::gelu_backward(grad, x, "none"), portable::activate(x, activation)};
    case Activation::GeluTanh:
      return {at::gelu_backward(grad, x, "tanh"), portable::activate(x, activation)};
    case Activation::Relu:
      return {at::threshold_backward(grad, x, 0), portable::activate(x, activation)};
    case Activation::Silu:
      return {at::silu_backward(grad, x), portable::activate(x, activation)};
  }
  return {};
}

at::Tensor gated_activate(const at::Tensor& x, Activation activation) {
  const int64_t size = x.size(-1) / 2;
  return portable::activate(x.narrow(-1, 0, size).contiguous(), activation).mul_(x.narrow(-1, size, size));
}

ActivationBackward gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  const int64_t size = x.size(-1) / 2;
  const at::Tensor gate = x.narrow(-1, 0, size).contiguous(), up = x.narrow(-1, size, size);
  const ActivationBackward of_gate = portable::activate_backward(grad * up, gate, activation);
  return {at::cat({of_gate.grad, of_gate.output * grad}, -1), of_gate.output * up};
}

}  // namespace portable

}  // namespace gyre
