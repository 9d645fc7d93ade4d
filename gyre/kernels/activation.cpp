#include "gyre/kernels/activation.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "gyre/kernels/activation_functions.h"
#include "gyre/kernels/cpu_dispatch.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

using cpu::load;
using cpu::Point;
using cpu::rounded;
using cpu::store;

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

#define GYRE_ACTIVATION(Function, T)                                                                                \
  GYRE_CPU_KERNEL void forward_kernel(Function<T>, const T* x, T* y, int64_t count) {                               \
    forward_loop<Function<T>>(x, y, count);                                                                         \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void backward_kernel(Function<T>, const T* grad, const T* x, T* grad_x, T* y, int64_t n) {        \
    backward_loop<Function<T>>(grad, x, grad_x, y, n);                                                              \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void gated_forward_kernel(Function<T>, const T* x, T* y, int64_t rows, int64_t n) {               \
    gated_forward_loop<Function<T>>(x, y, rows, n);                                                                 \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void gated_backward_kernel(Function<T>, const T* grad, const T* x, T* grad_x, T* y, int64_t rows, \
                                             int64_t n) {                                                           \
    gated_backward_loop<Function<T>>(grad, x, grad_x, y, rows, n);                                                  \
  }
GYRE_ACTIVATION(cpu::Gelu, float)
GYRE_ACTIVATION(cpu::Gelu, c10::BFloat16)
GYRE_ACTIVATION(cpu::GeluTanh, float)
GYRE_ACTIVATION(cpu::GeluTanh, c10::BFloat16)
GYRE_ACTIVATION(cpu::Relu, float)
GYRE_ACTIVATION(cpu::Relu, c10::BFloat16)
GYRE_ACTIVATION(cpu::Silu, float)
GYRE_ACTIVATION(cpu::Silu, c10::BFloat16)
#undef GYRE_ACTIVATION

template <typename T, typename Run>
void run_with(Activation activation, Run& run) {
  switch (activation) {
    case Activation::Gelu:
      return run.template operator()<T>(cpu::Gelu<T>{});
    case Activation::GeluTanh:
      return run.template operator()<T>(cpu::GeluTanh<T>{});
    case Activation::Relu:
      return run.template operator()<T>(cpu::Relu<T>{});
    case Activation::Silu:
      return run.template operator()<T>(cpu::Silu<T>{});
  }
}

// Calls run<T>(function) and returns true if there are kernels for x's type T and layout; else returns false.
template <typename Run>
bool with_kernel(const at::Tensor& x, Activation activation, Run run) {
  if (!x.is_contiguous()) return false;
  return cpu::dispatch(
      x,
      [&]<typename T>() {
        run_with<T>(activation, run);
        return true;
      },
      [] { return false; });
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
  const bool done = with_kernel(x, activation, [&]<typename T>(auto function) {
    y = at::empty(x.sizes(), x.options());
    const auto* from = x.data_ptr<T>();
    auto* const to = y.data_ptr<T>();
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
  const bool done = cpu::is_plain(grad, x.scalar_type()) && with_kernel(x, activation, [&]<typename T>(auto function) {
                      result = {at::empty(x.sizes(), x.options()), at::empty(x.sizes(), x.options())};
                      const auto *grads = grad.data_ptr<T>(), *from = x.data_ptr<T>();
                      auto *const grad_x = result.grad.data_ptr<T>(), *const y = result.output.data_ptr<T>();
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
  const bool done = with_kernel(x, activation, [&]<typename T>(auto function) {
    const int64_t size = x.size(-1) / 2;
    y = at::empty(half_of(x), x.options());
    const auto* from = x.data_ptr<T>();
    auto* const to = y.data_ptr<T>();
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
  const bool done = cpu::is_plain(grad, x.scalar_type()) && with_kernel(x, activation, [&]<typename T>(auto function) {
                      const int64_t size = x.size(-1) / 2;
                      result = {at::empty(x.sizes(), x.options()), at::empty(half_of(x), x.options())};
                      const auto *grads = grad.data_ptr<T>(), *from = x.data_ptr<T>();
                      auto *const grad_x = result.grad.data_ptr<T>(), *const y = result.output.data_ptr<T>();
                      cpu::for_rows(grad.numel() / size, size, [&](int64_t begin, int64_t end) {
                        gated_backward_kernel(function, grads + begin * size, from + begin * 2 * size,
                                              grad_x + begin * 2 * size, y + begin * size, end - begin, size);
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
