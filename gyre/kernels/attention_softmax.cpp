#include "gyre/kernels/attention_softmax.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
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
  Rows(int64_t number, int64_t in_matrix, int64_t of_keys, bool is_causal)
      : count(number), of_matrix(in_matrix), keys(of_keys), causal(is_causal) {}
  Rows(const at::Tensor& scores, bool is_causal)
      : Rows(scores.numel() / scores.size(-1), scores.size(-2), scores.size(-1), is_causal) {}
  GYRE_INLINE int64_t visible(int64_t row) const { return causal ? keys - of_matrix + row % of_matrix + 1 : keys; }
};

// The `visible` values of scratch by `factor`, and zeros for the other keys.
template <typename T>
GYRE_INLINE void store_row(const float* scratch, float factor, T* __restrict to, int64_t visible, int64_t keys) {
  const int64_t whole = visible / cpu::kLanes * cpu::kLanes;
  cpu::for_lanes(whole, [=](int64_t i) { store(to + i, scratch[i] * factor); });
  for (int64_t i = whole; i < visible; ++i) store(to + i, scratch[i] * factor);
  std::memset(static_cast<void*>(to + visible), 0, static_cast<size_t>(keys - visible) * sizeof(T));
}

template <typename T>
GYRE_INLINE void forward_rows(T* scores, float* __restrict scratch, const Rows& rows, float scale) {
  for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {
    const int64_t visible = rows.visible(row), whole = cpu::whole_lanes(visible);
    cpu::load_row(scores, scratch, visible);
    const float most = scale * cpu::lane_max(scratch, whole);
    const float sum =
        cpu::lane_sum(whole, [=](int64_t i) { return scratch[i] = cpu::exp_negative(scale * scratch[i] - most); });
    store_row(scratch, 1.0f / sum, scores, visible, rows.keys);
  }
}

template <typename T>
GYRE_INLINE void backward_rows(T* __restrict grad, const T* __restrict probabilities, const Rows& rows, float scale) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, probabilities += rows.keys) {
    // Behind what is visible probabilities are zero, and so is what is made of them.
    const int64_t count = std::min(cpu::whole_lanes(rows.visible(row)), rows.keys);
    const float dot = cpu::lane_sum(count, [=](int64_t i) { return load(grad + i) * load(probabilities + i); });
    const auto result = [=](int64_t i) { store(grad + i, scale * load(probabilities + i) * (load(grad + i) - dot)); };
    const int64_t whole = count / cpu::kLanes * cpu::kLanes;
    cpu::for_lanes(whole, result);
    for (int64_t i = whole; i < count; ++i) result(i);
    std::memset(static_cast<void*>(grad + count), 0, static_cast<size_t>(rows.keys - count) * sizeof(T));
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
  std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(scores.size(-1))));
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

void cpu::attention_softmax(c10::BFloat16* scores, float* scratch, int64_t rows, int64_t keys, double scale,
                            bool causal) {
  forward_kernel(scores, scratch, Rows(rows, rows, keys, causal), static_cast<float>(scale));
}

void cpu::attention_softmax_backward(c10::BFloat16* grad, const c10::BFloat16* probabilities, int64_t rows,
                                     int64_t keys, double scale, bool causal) {
  backward_kernel(grad, probabilities, Rows(rows, rows, keys, causal), static_cast<float>(scale));
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
