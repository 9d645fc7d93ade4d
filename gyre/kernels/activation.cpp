#include "gyre/kernels/activation.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

using cpu::exp2_negative;
using cpu::load;
using cpu::rounded;
using cpu::store;

// f(x) and f'(x).
struct Point {
  float value, slope;
};

// x Phi(x), with Phi(x) = (1 + erf(x / sqrt 2)) / 2. The tail 1 - Phi(|x|) is a polynomial in 1 / (1 + c |x|) times
// e^(-x^2 / 2), which the slope needs too, as the density (Abramowitz and Stegun 7.1.26). The absolute error of Phi is
// below 1e-7, a thousandth of bf16's rounding error near 1; where Phi is small, its relative error is larger.
struct Gelu {
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

GYRE_INLINE float sigmoid(float x) {
  const float small = exp2_negative(1.44269504f * (x < 0 ? x : -x));  // log2(e)
  return (x < 0 ? small : 1.0f) / (1.0f + small);
}

// x sigmoid(2 u) = x (1 + tanh u) / 2, with u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  GYRE_INLINE static Point at(float x) {
    constexpr float kFactor = 2 * 0.79788456f, kCubic = 0.044715f;
    const float s = sigmoid(kFactor * (x + kCubic * x * x * x));
    return {x * s, s + x * s * (1.0f - s) * kFactor * (1.0f + 3 * kCubic * x * x)};
  }
};

struct Silu {
  GYRE_INLINE static Point at(float x) {
    const float s = sigmoid(x);
    return {x * s, s + x * s * (1.0f - s)};
  }
};

template <typename Function, typename T>
GYRE_INLINE void forward_loop(const T* __restrict x, T* __restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(y + i, Function::at(load(x + i)).value);
}

template <typename Function, typename T>
GYRE_INLINE void backward_loop(const T* __restrict grad, const T* __restrict x, T* __restrict grad_x, T* __restrict y,
                               int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Point point = Function::at(load(x + i));
    store(y + i, point.value);
    store(grad_x + i, load(grad + i) * point.slope);
  }
}

// x has rows of 2 n: gate, then up. Rounds wherever the portable path stores an intermediate tensor, so that both give
// the same bits.
template <typename Function, typename T>
GYRE_INLINE void gated_forward_loop(const T* __restrict x, T* __restrict y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, x += 2 * n, y += n) {
    for (int64_t i = 0; i < n; ++i) store(y + i, rounded<T>(Function::at(load(x + i)).value) * load(x + n + i));
  }
}

template <typename Function, typename T>
GYRE_INLINE void gated_backward_loop(const T* __restrict grad, const T* __restrict x, T* __restrict grad_x,
                                     T* __restrict y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, grad += n, x += 2 * n, grad_x += 2 * n, y += n) {
    for (int64_t i = 0; i < n; ++i) {
      const Point point = Function::at(load(x + i));
      const float up = load(x + n + i), value = rounded<T>(point.value);
      store(y + i, value * up);
      store(grad_x + i, rounded<T>(load(grad + i) * up) * point.slope);
      store(grad_x + n + i, value * load(grad + i));
    }
  }
}

#define GYRE_ACTIVATION(Function, T)                                                                             \
  GYRE_CPU_KERNEL void forward_kernel(Function, const T* x, T* y, int64_t count) {                               \
    forward_loop<Function>(x, y, count);                                                                         \
  }                                                                                                              \
  GYRE_CPU_KERNEL void backward_kernel(Function, const T* grad, const T* x, T* grad_x, T* y, int64_t n) {        \
    backward_loop<Function>(grad, x, grad_x, y, n);                                                              \
  }                                                                                                              \
  GYRE_CPU_KERNEL void gated_forward_kernel(Function, const T* x, T* y, int64_t rows, int64_t n) {               \
    gated_forward_loop<Function>(x, y, rows, n);                                                                 \
  }                                                                                                              \
  GYRE_CPU_KERNEL void gated_backward_kernel(Function, const T* grad, const T* x, T* grad_x, T* y, int64_t rows, \
                                             int64_t n) {                                                        \
    gated_backward_loop<Function>(grad, x, grad_x, y, rows, n);                                                  \
  }
GYRE_ACTIVATION(Gelu, c10::BFloat16)
GYRE_ACTIVATION(GeluTanh, c10::BFloat16)
GYRE_ACTIVATION(Silu, c10::BFloat16)
#undef GYRE_ACTIVATION

// Calls run(function) and returns true if there is a fast kernel for x's type and layout; else returns false.
template <typename Run>
bool with_kernel(const at::Tensor& x, Activation activation, Run run) {
  if (!cpu::is_plain(x, at::kBFloat16)) return false;
  switch (activation) {
    case Activation::Gelu:
      run(Gelu{});
      return true;
    case Activation::GeluTanh:
      run(GeluTanh{});
      return true;
    case Activation::Silu:
      run(Silu{});
      return true;
    case Activation::Relu:
      return false;
  }
  return false;
}

// Sizes (..., n) for x of (..., 2 n).
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
    const auto* from = x.data_ptr<c10::BFloat16>();
    auto* const to = y.data_ptr<c10::BFloat16>();
    cpu::for_elements(x.numel(), [&](int64_t begin, int64_t end) {
      forward_kernel(function, from + begin, to + begin, end - begin);
    });
  });
  return done || cuda::activate(x, activation, y) ? y : portable::activate(x, activation);
}

ActivationBackward activate_backward(const at::Tensor& any_grad, const at::Tensor& any_x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  const at::Tensor grad = any_grad.contiguous(),
                   x = any_x.contiguous();  // ATen's gelu_backward reads a permuted grad wrongly
  ActivationBackward result;
  const bool done =
      cpu::is_plain(grad, at::kBFloat16) && with_kernel(x, activation, [&](auto function) {
        result = {at::empty(x.sizes(), x.options()), at::empty(x.sizes(), x.options())};
        const auto *grads = grad.data_ptr<c10::BFloat16>(), *from = x.data_ptr<c10::BFloat16>();
        auto *const grad_x = result.grad.data_ptr<c10::BFloat16>(), *const y = result.output.data_ptr<c10::BFloat16>();
        cpu::for_elements(x.numel(), [&](int64_t begin, int64_t end) {
          backward_kernel(function, grads + begin, from + begin, grad_x + begin, y + begin, end - begin);
        });
      });
  if (done || cuda::activate_backward(grad, x, activation, result)) return result;
  return portable::activate_backward(grad, x, activation);
}

at::Tensor gated_activate(const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  at::Tensor y;
  const bool done = with_kernel(x, activation, [&](auto function) {
    const int64_t size = x.size(-1) / 2;
    y = at::empty(half_of(x), x.options());
    const auto* from = x.data_ptr<c10::BFloat16>();
    auto* const to = y.data_ptr<c10::BFloat16>();
    cpu::for_rows(y.numel() / size, size, [&](int64_t begin, int64_t end) {
      gated_forward_kernel(function, from + begin * 2 * size, to + begin * size, end - begin, size);
    });
  });
  return done || cuda::gated_activate(x, activation, y) ? y : portable::gated_activate(x, activation);
}

ActivationBackward gated_activate_backward(const at::Tensor& any_grad, const at::Tensor& any_x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  const at::Tensor grad = any_grad.contiguous(), x = any_x.contiguous();
  ActivationBackward result;
  const bool done =
      cpu::is_plain(grad, at::kBFloat16) && with_kernel(x, activation, [&](auto function) {
        const int64_t size = x.size(-1) / 2;
        result = {at::empty(x.sizes(), x.options()), at::empty(half_of(x), x.options())};
        const auto *grads = grad.data_ptr<c10::BFloat16>(), *from = x.data_ptr<c10::BFloat16>();
        auto *const grad_x = result.grad.data_ptr<c10::BFloat16>(), *const y = result.output.data_ptr<c10::BFloat16>();
        cpu::for_rows(grad.numel() / size, size, [&](int64_t begin, int64_t end) {
          gated_backward_kernel(function, grads + begin * size, from + begin * 2 * size, grad_x + begin * 2 * size,
                                y + begin * size, end - begin, size);
        });
      });
  if (done || cuda::gated_activate_backward(grad, x, activation, result)) return result;
  return portable::gated_activate_backward(grad, x, activation);
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
  const at::Tensor up = x.narrow(-1, size, size);
  ActivationBackward result = portable::activate_backward(grad * up, x.narrow(-1, 0, size).contiguous(), activation);
  // In place where it can be, since these are an MLP's largest tensors.
  at::Tensor grad_x = at::empty(x.sizes(), x.options()), grad_up = grad_x.narrow(-1, size, size);
  grad_x.narrow(-1, 0, size).copy_(result.grad);
  at::mul_out(grad_up, result.output, grad);
  return {std::move(grad_x), result.output.mul_(up)};
}

}  // namespace portable

}  // namespace gyre
