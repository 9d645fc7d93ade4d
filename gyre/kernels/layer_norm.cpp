#include "gyre/kernels/layer_norm.h"

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
GYRE_INLINE void output_row(const T* x, float mean, float rstd, const T* weight, const T* bias, T* y, int64_t width) {
  if (bias != nullptr) {
    for (int64_t i = 0; i < width; ++i) store(y + i, (load(x + i) - mean) * rstd * load(weight + i) + load(bias + i));
  } else {
    for (int64_t i = 0; i < width; ++i) store(y + i, (load(x + i) - mean) * rstd * load(weight + i));
  }
}

template <typename T>
GYRE_INLINE void output_rows(const T* x, const float* means, const float* rstds, const T* weight, const T* bias, T* y,
                             int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    output_row(x, means[row], rstds[row], weight, bias, y, width);
  }
}

// Statistics are fp32 whatever the type of x. ATen's CPU kernel for bf16 rounds them to bf16 in some versions, and is
// slow.
template <typename T>
GYRE_INLINE void forward_rows(const T* x, const T* weight, const T* bias, T* y, float* means, float* rstds,
                              int64_t rows, int64_t width, float epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const float mean = lane_sum(width, [x](int64_t i) { return load(x + i); }) / static_cast<float>(width);
    const float variance =
        lane_sum(width, [x, mean](int64_t i) { return (load(x + i) - mean) * (load(x + i) - mean); }) /
        static_cast<float>(width);
    const float rstd = 1.0f / std::sqrt(variance + epsilon);
    means[row] = mean;
    rstds[row] = rstd;
    output_row(x, mean, rstd, weight, bias, y, width);
  }
}

// With n = (x - mean) * rstd and h = grad * weight: dx = rstd (h - mean(h) - n mean(h n)); the gradients by
// weight and bias are the sums over rows of grad * n and grad.
template <typename T>
GYRE_INLINE void backward_rows(const T* grad, const T* x, const float* means, const float* rstds, const T* weight,
                               T* grad_x, float* grad_weight, float* grad_bias, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, grad += width, x += width, grad_x += width) {
    const float mean = means[row], rstd = rstds[row];
    const auto normed = [=](int64_t i) { return (load(x + i) - mean) * rstd; };
    const auto h = [=](int64_t i) { return load(grad + i) * load(weight + i); };
    const float mean_h = lane_sum(width, h) / static_cast<float>(width);
    const float mean_hn = lane_sum(width, [=](int64_t i) { return h(i) * normed(i); }) / static_cast<float>(width);
    for (int64_t i = 0; i < width; ++i) {
      grad_weight[i] += load(grad + i) * normed(i);
      grad_bias[i] += load(grad + i);
      store(grad_x + i, rstd * (h(i) - mean_h - normed(i) * mean_hn));
    }
  }
}

#define GYRE_LAYER_NORM(T)                                                                                             \
  GYRE_CPU_KERNEL void forward_kernel(const T* x, const T* weight, const T* bias, T* y, float* means, float* rstds,    \
                                      int64_t rows, int64_t width, float epsilon) {                                    \
    forward_rows(x, weight, bias, y, means, rstds, rows, width, epsilon);                                              \
  }                                                                                                                    \
  GYRE_CPU_KERNEL void output_kernel(const T* x, const float* means, const float* rstds, const T* weight,              \
                                     const T* bias, T* y, int64_t rows, int64_t width) {                               \
    output_rows(x, means, rstds, weight, bias, y, rows, width);                                                        \
  }                                                                                                                    \
  GYRE_CPU_KERNEL void backward_kernel(const T* grad, const T* x, const float* means, const float* rstds,              \
                                       const T* weight, T* grad_x, float* grad_weight, float* grad_bias, int64_t rows, \
                                       int64_t width) {                                                                \
    backward_rows(grad, x, means, rstds, weight, grad_x, grad_weight, grad_bias, rows, width);                         \
  }
GYRE_LAYER_NORM(float)
GYRE_LAYER_NORM(c10::BFloat16)
#undef GYRE_LAYER_NORM

template <typename T>
LayerNormResult cpu_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const auto wide = x.options().dtype(at::kFloat);
  LayerNormResult result{at::empty(x.sizes(), x.options()), at::empty({rows}, wide), at::empty({rows}, wide)};
  const T *from = x.data_ptr<T>(), *w = weight.data_ptr<T>(), *b = bias.defined() ? bias.data_ptr<T>() : nullptr;
  T* const y = result.output.data_ptr<T>();
  float *const means = result.mean.data_ptr<float>(), *const rstds = result.rstd.data_ptr<float>();
  cpu::for_rows(rows, width, [&](int64_t begin, int64_t end) {
    forward_kernel(from + begin * width, w, b, y + begin * width, means + begin, rstds + begin, end - begin, width,
                   static_cast<float>(epsilon));
  });
  return result;
}

template <typename T>
at::Tensor cpu_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                      const at::Tensor& bias) {
  const int64_t width = x.size(-1);
  at::Tensor y = at::empty(x.sizes(), x.options());
  const T *from = x.data_ptr<T>(), *w = weight.data_ptr<T>(), *b = bias.defined() ? bias.data_ptr<T>() : nullptr;
  const float *means = mean.data_ptr<float>(), *rstds = rstd.data_ptr<float>();
  T* const to = y.data_ptr<T>();
  cpu::for_rows(x.numel() / width, width, [&](int64_t begin, int64_t end) {
    output_kernel(from + begin * width, means + begin, rstds + begin, w, b, to + begin * width, end - begin, width);
  });
  return y;
}

template <typename T>
LayerNormGradients cpu_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                const at::Tensor& rstd, const at::Tensor& weight) {
  const int64_t width = x.size(-1), rows = x.numel() / width, parts = cpu::part_count(rows, width);
  const at::Tensor grad_x = at::empty(x.sizes(), x.options());
  const auto wide = x.options().dtype(at::kFloat);
  const at::Tensor weight_sums = at::zeros({parts, width}, wide), bias_sums = at::zeros({parts, width}, wide);
  const T *grads = grad.data_ptr<T>(), *from = x.data_ptr<T>(), *w = weight.data_ptr<T>();
  const float *means = mean.data_ptr<float>(), *rstds = rstd.data_ptr<float>();
  T* const to = grad_x.data_ptr<T>();
  float *const by_weight = weight_sums.data_ptr<float>(), *const by_bias = bias_sums.data_ptr<float>();
  cpu::for_parts(parts, rows, [&](int64_t part, int64_t begin, int64_t end) {
    backward_kernel(grads + begin * width, from + begin * width, means + begin, rstds + begin, w, to + begin * width,
                    by_weight + part * width, by_bias + part * width, end - begin, width);
  });
  return {grad_x, cpu::sum_of_parts(weight_sums), cpu::sum_of_parts(bias_sums)};
}

}  // namespace

LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const ProfileScope scope("gyre::norm");
  LayerNormResult result;
  if (cuda::layer_norm(x, weight, bias, epsilon, result)) return result;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_forward<T>(x.contiguous(), weight, bias, epsilon); },
      [&] { return portable::layer_norm(x, weight, bias, epsilon); });
}

at::Tensor layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& bias) {
  const ProfileScope scope("gyre::norm");
  at::Tensor output;
  if (cuda::layer_norm_output(x, mean, rstd, weight, bias, output)) return output;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_output<T>(x.contiguous(), mean, rstd, weight, bias); },
      [&] { return portable::layer_norm_output(x, mean, rstd, weight, bias); });
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight) {
  const ProfileScope scope("gyre::norm");
  LayerNormGradients gradients;
  if (cuda::layer_norm_backward(grad, x, mean, rstd, weight, gradients)) return gradients;
  return cpu::dispatch(
      x, [&]<typename T>() { return cpu_backward<T>(grad.contiguous(), x.contiguous(), mean, rstd, weight); },
      [&] { return portable::layer_norm_backward(grad, x, mean, rstd, weight); });
}

namespace portable {

LayerNormResult layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const at::Tensor rows = rows_of(x).to(wide_type(x));
  const at::Tensor mean = rows.mean(-1);
  const at::Tensor rstd = (rows - mean.unsqueeze(-1)).square_().mean(-1).add_(epsilon).rsqrt_();
  return {portable::layer_norm_output(x, mean, rstd, weight, bias), mean, rstd};
}

at::Tensor layer_norm_output(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                             const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = rows_of(x).to(wide_type(x)) - mean.unsqueeze(-1);
  at::Tensor y = centred * rstd.unsqueeze(-1) * weight;
  if (bias.defined()) y.add_(bias);
  return y.to(x.scalar_type()).view(x.sizes());
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean,
                                       const at::Tensor& rstd, const at::Tensor& weight) {
  const auto wide = wide_type(x);
  const at::Tensor g = rows_of(grad).to(wide), r = rstd.unsqueeze(-1);
  const at::Tensor normed = (rows_of(x).to(wide) - mean.unsqueeze(-1)) * r;
  const at::Tensor h = g * weight;
  const at::Tensor mean_h = h.mean(-1, /*keepdim=*/true), mean_hn = (h * normed).mean(-1, /*keepdim=*/true);
  const at::Tensor grad_x = (h - mean_h - normed * mean_hn) * r;
  return {grad_x.to(x.scalar_type()).view(x.sizes()), (g * normed).sum(0), g.sum(0)};
}

}  // namespace portable

}  // namespace gyre
