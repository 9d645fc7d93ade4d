#include "gyre/kernels/attention_softmax.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/portable.h"

namespace gyre {
namespace {

using cpu::load;
using cpu::store;

// `row` counts over all matrices; its position is row % context. Only the visible part costs arithmetic.
template <typename T>
GYRE_INLINE void forward_rows(T* scores, float* scratch, int64_t rows, int64_t context, float scale, bool causal) {
  for (int64_t row = 0; row < rows; ++row, scores += context) {
    const int64_t visible = causal ? row % context + 1 : context;
    const float most = scale * cpu::lane_max(visible, [scores](int64_t i) { return load(scores + i); });
    for (int64_t i = 0; i < visible; ++i) scratch[i] = cpu::exp_negative(scale * load(scores + i) - most);
    const float factor = 1.0f / cpu::lane_sum(visible, [scratch](int64_t i) { return scratch[i]; });
    for (int64_t i = 0; i < visible; ++i) store(scores + i, scratch[i] * factor);
    for (int64_t i = visible; i < context; ++i) store(scores + i, 0.0f);
  }
}

template <typename T>
GYRE_INLINE void backward_rows(T* grad, const T* probabilities, int64_t rows, int64_t context, float scale,
                               bool causal) {
  for (int64_t row = 0; row < rows; ++row, grad += context, probabilities += context) {
    const int64_t visible = causal ? row % context + 1 : context;
    const float dot = cpu::lane_sum(visible, [=](int64_t i) { return load(grad + i) * load(probabilities + i); });
    for (int64_t i = 0; i < visible; ++i) {
      store(grad + i, scale * load(probabilities + i) * (load(grad + i) - dot));
    }
    for (int64_t i = visible; i < context; ++i) store(grad + i, 0.0f);
  }
}

#define GYRE_ATTENTION_SOFTMAX(T)                                                                                   \
  GYRE_CPU_KERNEL void forward_kernel(T* scores, float* scratch, int64_t rows, int64_t context, float scale,        \
                                      bool causal) {                                                                \
    forward_rows(scores, scratch, rows, context, scale, causal);                                                    \
  }                                                                                                                 \
  GYRE_CPU_KERNEL void backward_kernel(T* grad, const T* probabilities, int64_t rows, int64_t context, float scale, \
                                       bool causal) {                                                               \
    backward_rows(grad, probabilities, rows, context, scale, causal);                                               \
  }
GYRE_ATTENTION_SOFTMAX(float)
GYRE_ATTENTION_SOFTMAX(c10::BFloat16)
#undef GYRE_ATTENTION_SOFTMAX

template <typename T>
void cpu_forward(at::Tensor& scores, double scale, bool causal) {
  const int64_t context = scores.size(-1);
  std::vector<float> scratch(static_cast<size_t>(context));
  forward_kernel(scores.data_ptr<T>(), scratch.data(), scores.numel() / context, context, static_cast<float>(scale),
                 causal);
}

template <typename T>
void cpu_backward(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  const int64_t context = grad.size(-1);
  backward_kernel(grad.data_ptr<T>(), probabilities.data_ptr<T>(), grad.numel() / context, context,
                  static_cast<float>(scale), causal);
}

}  // namespace

void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  if (scores.is_cpu() && scores.scalar_type() == at::kFloat) return cpu_forward<float>(scores, scale, causal);
  if (scores.is_cpu() && scores.scalar_type() == at::kBFloat16)
    return cpu_forward<c10::BFloat16>(scores, scale, causal);
  portable::attention_softmax_in_place(scores, scale, causal);
}

void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  if (grad.is_cpu() && grad.scalar_type() == at::kFloat) return cpu_backward<float>(grad, probabilities, scale, causal);
  if (grad.is_cpu() && grad.scalar_type() == at::kBFloat16) {
    return cpu_backward<c10::BFloat16>(grad, probabilities, scale, causal);
  }
  portable::attention_softmax_backward_in_place(grad, probabilities, scale, causal);
}

namespace portable {

void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  const int64_t context = scores.size(-1);
  at::Tensor visible = scores.to(wide_type(scores)) * scale;
  if (causal) {
    const at::Tensor hidden = at::ones({context, context}, scores.options().dtype(at::kBool)).triu_(1);
    visible.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  }
  scores.copy_(at::softmax(visible, -1));
}

void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool) {
  // Probabilities are zero where nothing is seen.
  const at::Tensor g = grad.to(wide_type(grad)), p = probabilities.to(wide_type(grad));
  grad.copy_((g - (g * p).sum(-1, /*keepdim=*/true)) * p * scale);
}

}  // namespace portable

}  // namespace gyre
