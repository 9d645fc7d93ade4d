#include "gyre/kernels/rms_norm.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/cpu_dispatch.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cuda/kernels.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/portable.h"
#include "gyre/tensors/profile_scope.h"
#include "gyre/tensors/wide_type.h"

namespace gyre {
namespace {

using cpu::lane_sum;
using cpu::load;
using cpu::store;

template <typename T>
GYRE_INLINE void output_row(const T* x, float rstd, const T* weight, T* y, int64_t width) {
  for (int64_t i = 0; i < width; ++i) store(y + i, load(x + i) * rstd * load(weight + i));
}

template <typename T>
GYRE_INLINE void output_rows(const T* x, const float* rstds, const T* weight, T* y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) output_row(x, rstds[row], weight, y, width);
}

template <typename T>
GYRE_INLINE void forward_rows(const T* x, const T* weight, T* y, float* rstds, int64_t rows, int64_t width,
                              float epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const float square = lane_sum(width, [x](int64_t i) { return load(x + i) * load(x + i); });
    const float rstd = 1.0f / std::sqrt(square / static_cast<float>(width) + epsilon);
    rstds[row] = rstd;
    output_row(x, rstd, weight, y, width);
  }
}

// With n = x * rstd and h = grad * weight: dx = rstd (h - n mean(h n)); the gradient by the weight is the sum over rows
// of grad * n.
template <typename T>
GYRE_INLINE void backward_rows(const T* grad, const T* x, const float* rstds, const T* weight, T* grad_x,
                               float* grad_weight, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, grad += width, x += width, grad_x += width) {
    const float rstd = rstds[row];
    const auto normed = [=](int64_t i) { return load(x + i) * rstd; };
    const auto h = [=](int64_t i) { return load(grad + i) * load(weight + i); };
    const float mean_hn = lane_sum(width, [=](int64_t i) { return h(i) * normed(i); }) / static_cast<float>(width);
    for (int64_t i = 0; i < width; ++i) {
      grad_weight[i] += load(grad + i) * normed(i);
      store(grad_x + i, rstd * (h(i) - normed(i) * mean_hn));
    }
  }
}

#define GYRE_RMS_NORM(T)                                                                                            \
  GYRE_CPU_KERNEL void forward_kernel(const T* x, const T* weight, T* y, float* rstds, int64_t rows, int64_t width, \
                                      float epsilon) {                                                              \
    forward_rows(x, weight, y, rstds, rows, width, epsilon);                                                        \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void output_kernel(const T* x, const float* rstds, const T* weight, T* y, int64_t rows,           \
                                     int64_t width) {                                                               \
    output_rows(x, rstds, weight, y, rows, width);                                                                  \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void backward_kernel(const T* grad, const T* x, const float* rstds, const T* weight, T* grad_x,   \
                                       float* grad_weight, int64_t rows, int64_t width) {                           \
    backward_rows(grad, x, rstds, weight, grad_x, grad_weight, rows, width);                                        \
  }
GYRE_RMS_NORM(float)
GYRE_RMS_NORM(c10::BFloat16)
#undef GYRE_RMS_NORM

template <typename T>
RmsNormResult cpu_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  RmsNormResult result{at::empty(x.sizes(), x.options()), at::empty({rows}, x.options().dtype(at::kFloat))};
  const T *from = x.data_ptr<T>(), *w = weight.data_ptr<T>();
  T* const y = result.output.data_ptr<T>();
  float* const rstds = result.rstd.data_ptr<float>();
  cpu::for_rows(rows, width, [&](int64_t begin, int64_t end) {
    forward_kernel(from + begin * width, w, y + begin * width, rstds + begin, end - begin, width,
                   static_cast<float>(epsilon));
  });
  return result;
}

template <typename T>
at::Tensor cpu_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight) {
  const int64_t width = x.size(-1);
  at::Tensor y = at::empty(x.sizes(), x.options());
  const T *from = x.data_ptr<T>(), *w = weight.data_ptr<T>();
  const float* rstds = rstd.data_ptr<float>();
  T* const to = y.data_ptr<T>();
  cpu::for_rows(x.numel() / width, width, [&](int64_t begin, int64_t end) {
    output_kernel(from + begin * width, rstds + begin, w, to + begin * width, end - begin, width);
  });
  return y;
}

template <typename T>
RmsNormGradients cpu_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                              const at::Tensor& weight) {
  const int64_t width = x.size(-1), rows = x.numel() / width, parts = cpu::part_count(rows, width);
  const at::Tensor grad_x = at::empty(x.sizes(), x.options());
  const at::Tensor sums = at::zeros({parts, width}, x.options().dtype(at::kFloat));
  const T *grads = grad.data_ptr<T>(), *from = x.data_ptr<T>(), *w = weight.data_ptr<T>();
  const float* rstds = rstd.data_ptr<float>();
  T* const to = grad_x.data_ptr<T>();
  float* const by_weight = sums.data_ptr<float>();
  cpu::for_parts(parts, rows, [&](int64_t part, int64_t begin, int64_t end) {
    backward_kernel(grads + begin * width, from + begin * width, rstds + begin, w, to + begin * width,
                    by_weight + part * width, end - begin, width);
  });
  return {grad_x, cpu::sum_of_parts(sums)};
}

}  // namespace

RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const ProfileScope scope("gyre::norm");
  RmsNormResult result;
  if (cuda::rms_norm(x, weight, epsilon, result)) return result;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_forward<T>(x.contiguous(), weight, epsilon); },
      [&] { return portable::rms_norm(x, weight, epsilon); });
}

at::Tensor rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight) {
  const ProfileScope scope("gyre::norm");
  at::Tensor output;
  if (cuda::rms_norm_output(x, rstd, weight, output)) return output;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_output<T>(x.contiguous(), rstd, weight); },
      [&] { return portable::rms_norm_output(x, rstd, weight); });
}

RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight) {
  const ProfileScope scope("gyre::norm");
  RmsNormGradients gradients;
  if (cuda::rms_norm_backward(grad, x, rstd, weight, gradients)) return gradients;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_backward<T>(grad.contiguous(), x.contiguous(), rstd, weight); },
      [&] { return portable::rms_norm_backward(grad, x, rstd, weight); });
}

namespace portable {

RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor rows = rows_of(x).to(wide_type(x));
  const at::Tensor rstd = rows.square().mean(-1).add_(epsilon).rsqrt_();
  return {portable::rms_norm_output(x, rstd, weight), rstd};
}

at::Tensor rms_norm_output(const at::Tensor& x, const at::Tensor& rstd, const at::Tensor& weight) {
  const at::Tensor rows = rows_of(x).to(wide_type(x));
  return (rows * rstd.unsqueeze(-1) * weight).to(x.scalar_type()).view(x.sizes());
}

RmsNormGradients rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& rstd,
                                   const at::Tensor& weight) {
  const auto wide = wide_type(x);
  const at::Tensor g = rows_of(grad).to(wide), r = rstd.unsqueeze(-1);
  const at::Tensor normed = rows_of(x).to(wide) * r;
  const at::Tensor h = g * weight;
  const at::Tensor grad_x = (h - normed * (h * normed).mean(-1, /*keepdim=*/true)) * r;
  return {grad_x.to(x.scalar_type()).view(x.sizes()), (g * normed).sum(0)};
}

}  // namespace portable

}  // namespace gyre
