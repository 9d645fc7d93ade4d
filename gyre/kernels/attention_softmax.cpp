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

// Of all matrices' rows one after the other. Only the visible part costs arithmetic.
struct Rows {
  int64_t count = 0, of_matrix = 0, keys = 0;
  bool causal = false;
  explicit Rows(const at::Tensor& scores, bool is_causal)
      : count(scores.numel() / scores.size(-1)), of_matrix(scores.size(-2)), keys(scores.size(-1)), causal(is_causal) {}
  GYRE_INLINE int64_t visible(int64_t row) const { return causal ? keys - of_matrix + row % of_matrix + 1 : keys; }
};

template <typename T>
GYRE_INLINE void forward_rows(T* scores, float* scratch, const Rows& rows, float scale) {
  for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {
    const int64_t visible = rows.visible(row);
    const float most = scale * cpu::lane_max(visible, [scores](int64_t i) { return load(scores + i); });
    for (int64_t i = 0; i < visible; ++i) scratch[i] = cpu::exp_negative(scale * load(scores + i) - most);
    const float factor = 1.0f / cpu::lane_sum(visible, [scratch](int64_t i) { return scratch[i]; });
    for (int64_t i = 0; i < visible; ++i) store(scores + i, scratch[i] * factor);
    for (int64_t i = visible; i < rows.keys; ++i) store(scores + i, 0.0f);
  }
}

template <typename T>
GYRE_INLINE void backward_rows(T* grad, const T* probabilities, const Rows& rows, float scale) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, probabilities += rows.keys) {
    const int64_t visible = rows.visible(row);
    const float dot = cpu::lane_sum(visible, [=](int64_t i) { return load(grad + i) * load(probabilities + i); });
    for (int64_t i = 0; i < visible; ++i) {
      store(grad + i, scale * load(probabilities + i) * (load(grad + i) - dot));
    }
    for (int64_t i = visible; i < rows.keys; ++i) store(grad + i, 0.0f);
  }
}

#define GYRE_ATTENTION_SOFTMAX(T)                                                                        \
  GYRE_CPU_KERNEL void forward_kernel(T* scores, float* scratch, const Rows& rows, float scale) {        \
    forward_rows(scores, scratch, rows, scale);                                                          \
  }                                                                                                      \
  GYRE_CPU_KERNEL void backward_kernel(T* grad, const T* probabilities, const Rows& rows, float scale) { \
    backward_rows(grad, probabilities, rows, scale);                                                     \
  }
GYRE_ATTENTION_SOFTMAX(float)
GYRE_ATTENTION_SOFTMAX(c10::BFloat16)
#undef GYRE_ATTENTION_SOFTMAX

template <typename T>
void cpu_forward(at::Tensor& scores, double scale, bool causal) {
  std::vector<float> scratch(static_cast<size_t>(scores.size(-1)));
  forward_kernel(scores.data_ptr<T>(), scratch.data(), Rows(scores, causal), static_cast<float>(scale));
}

template <typename T>
void cpu_backward(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  backward_kernel(grad.data_ptr<T>(), probabilities.data_ptr<T>(), Rows(grad, causal), static_cast<float>(scale));
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
  const int64_t rows = scores.size(-2), keys = scores.size(-1);
  at::Tensor visible = scores.to(wide_type(scores)) * scale;
  if (causal) {
    const at::Tensor hidden = at::ones({rows, keys}, scores.options().dtype(at::kBool)).triu_(keys - rows + 1);
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
