#include "gyre/kernels/attention_softmax.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/portable.h"

namespace gyre {
namespace {

using cpu::kLanes;
using cpu::load;
using cpu::load_two;
using cpu::SoftmaxRow;
using cpu::store;
using cpu::store_two;
using cpu::Two;
using Bf16 = c10::BFloat16;

constexpr int64_t kAtOnce = 2 * int64_t{kLanes};  // keys

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

template <typename T>
GYRE_INLINE void hide(T* row, int64_t visible, int64_t keys) {
  std::memset(static_cast<void*>(row + visible), 0, static_cast<size_t>(keys - visible) * sizeof(T));
}

// The `visible` values of scratch by `factor`, and zeros for the other keys.
template <typename T>
GYRE_INLINE void store_row(const float* scratch, float factor, T* __restrict to, int64_t visible, int64_t keys) {
  const int64_t whole = visible / cpu::kLanes * cpu::kLanes;
  cpu::for_lanes(whole, [=](int64_t i) { store(to + i, scratch[i] * factor); });
  for (int64_t i = whole; i < visible; ++i) store(to + i, scratch[i] * factor);
  hide(to, visible, keys);
}

// by_two: the scale times log2(e), as powers of two are what is fast.
template <typename T>
GYRE_INLINE SoftmaxRow forward_row(T* scores, float* __restrict scratch, int64_t visible, int64_t keys, float by_two) {
  const int64_t whole = cpu::whole_lanes(visible);
  cpu::load_row(scores, scratch, visible);
  const float shift = by_two * cpu::lane_max(scratch, whole);
  const float sum =
      cpu::lane_sum(whole, [=](int64_t i) { return scratch[i] = cpu::exp2_negative(by_two * scratch[i] - shift); });
  const float factor = 1.0f / sum;
  store_row(scratch, factor, scores, visible, keys);
  return {shift, factor};
}

// Of probabilities that are there.
template <typename T>
GYRE_INLINE void backward_row(T* __restrict grad, const T* __restrict probabilities, int64_t visible, int64_t keys,
                              float scale) {
  // Behind what is visible probabilities are zero, and so is what is made of them.
  const int64_t count = std::min(cpu::whole_lanes(visible), keys), whole = count / kLanes * kLanes;
  const float dot = cpu::lane_sum(count, [=](int64_t i) { return load(grad + i) * load(probabilities + i); });
  const auto result = [=](int64_t i) { store(grad + i, scale * load(probabilities + i) * (load(grad + i) - dot)); };
  cpu::for_lanes(whole, result);
  for (int64_t i = whole; i < count; ++i) result(i);
  hide(grad, count, keys);
}

// As forward_row has it, by the same operations.
GYRE_INLINE float probability(float score, const SoftmaxRow& of, float by_two) {
  return cpu::rounded<Bf16>(cpu::exp2_negative(by_two * score - of.shift) * of.factor);
}

// Scores become probabilities, and sums get those times grad. kPart: only the first `count` keys are visible; the
// others' probabilities are zero.
template <bool kPart>
GYRE_INLINE void probabilities(Bf16* __restrict scores, const Bf16* __restrict grad, float* __restrict sums,
                               const SoftmaxRow& of, float by_two, int count) {
  for (int word = 0; word < kLanes; ++word) {
    const Two score = load_two(scores + 2 * word), by = load_two(grad + 2 * word);
    Two p{probability(score.first, of, by_two), probability(score.second, of, by_two)};
    if (kPart) p = {2 * word < count ? p.first : 0, 2 * word + 1 < count ? p.second : 0};
    store_two(scores + 2 * word, p);
    sums[word] += p.first * by.first;
    sums[word] += p.second * by.second;
  }
}

// grad becomes scale * P * (grad - dot).
GYRE_INLINE void gradients(const Bf16* __restrict of, Bf16* __restrict grad, float scale, float dot) {
  for (int word = 0; word < kLanes; ++word) {
    const Two p = load_two(of + 2 * word), by = load_two(grad + 2 * word);
    store_two(grad + 2 * word, {scale * p.first * (by.first - dot), scale * p.second * (by.second - dot)});
  }
}

// A row's last keys, less than kAtOnce of them, where the row ends before kAtOnce: copies that do not.
struct LastKeys {
  std::array<Bf16, kAtOnce> scores{}, grad{};
  GYRE_INLINE void copy_from(const Bf16* of_scores, const Bf16* of_grad, int64_t count) {
    std::memcpy(static_cast<void*>(scores.data()), of_scores, static_cast<size_t>(count) * sizeof(Bf16));
    std::memcpy(static_cast<void*>(grad.data()), of_grad, static_cast<size_t>(count) * sizeof(Bf16));
  }
  GYRE_INLINE void copy_to(Bf16* of_scores, Bf16* of_grad, int64_t count) const {
    std::memcpy(static_cast<void*>(of_scores), scores.data(), static_cast<size_t>(count) * sizeof(Bf16));
    std::memcpy(static_cast<void*>(of_grad), grad.data(), static_cast<size_t>(count) * sizeof(Bf16));
  }
};

// Of scores.
GYRE_INLINE void backward_row(Bf16* grad, Bf16* scores, const SoftmaxRow& of, int64_t visible, int64_t keys,
                              float scale, float by_two) {
  const int64_t whole = visible / kAtOnce * kAtOnce;
  const auto rest = static_cast<int>(visible - whole);
  std::array<float, kLanes> sums{};
  for (int64_t i = 0; i < whole; i += kAtOnce) probabilities<false>(scores + i, grad + i, sums.data(), of, by_two, 0);
  LastKeys copies;
  const bool copied = rest > 0 && keys - whole < kAtOnce;
  if (copied) copies.copy_from(scores + whole, grad + whole, rest);
  Bf16 *last_scores = copied ? copies.scores.data() : scores + whole,
       *last = copied ? copies.grad.data() : grad + whole;
  if (rest > 0) probabilities<true>(last_scores, last, sums.data(), of, by_two, rest);
  const float dot = cpu::total(sums);
  for (int64_t i = 0; i < whole; i += kAtOnce) gradients(scores + i, grad + i, scale, dot);
  if (rest > 0) gradients(last_scores, last, scale, dot);
  if (copied) copies.copy_to(scores + whole, grad + whole, rest);
  hide(scores, visible, keys);
  hide(grad, visible, keys);
}

// Scores become probabilities, and grad becomes scale * P * (grad - dot), in one pass. kPart as above.
template <bool kPart>
GYRE_INLINE void probabilities_and_gradients(Bf16* __restrict scores, Bf16* __restrict grad, const SoftmaxRow& of,
                                             float by_two, float scale, float dot, int count) {
  for (int word = 0; word < kLanes; ++word) {
    const Two score = load_two(scores + 2 * word), by = load_two(grad + 2 * word);
    Two p{probability(score.first, of, by_two), probability(score.second, of, by_two)};
    if (kPart) p = {2 * word < count ? p.first : 0, 2 * word + 1 < count ? p.second : 0};
    store_two(scores + 2 * word, p);
    store_two(grad + 2 * word, {scale * p.first * (by.first - dot), scale * p.second * (by.second - dot)});
  }
}

// Of scores, with the row's sum given.
GYRE_INLINE void backward_part_of_row(Bf16* grad, Bf16* scores, const SoftmaxRow& of, float dot, int64_t visible,
                                      int64_t keys, float scale, float by_two) {
  const int64_t whole = visible / kAtOnce * kAtOnce;
  const auto rest = static_cast<int>(visible - whole);
  for (int64_t i = 0; i < whole; i += kAtOnce) {
    probabilities_and_gradients<false>(scores + i, grad + i, of, by_two, scale, dot, 0);
  }
  if (rest > 0 && keys - whole >= kAtOnce) {
    probabilities_and_gradients<true>(scores + whole, grad + whole, of, by_two, scale, dot, rest);
  } else if (rest > 0) {
    LastKeys copies;
    copies.copy_from(scores + whole, grad + whole, rest);
    probabilities_and_gradients<true>(copies.scores.data(), copies.grad.data(), of, by_two, scale, dot, rest);
    copies.copy_to(scores + whole, grad + whole, rest);
  }
  hide(scores, visible, keys);
  hide(grad, visible, keys);
}

#define GYRE_ATTENTION_SOFTMAX(T)                                                                        \
  GYRE_CPU_KERNEL void forward_kernel(T* scores, float* scratch, const Rows& rows, float by_two) {       \
    for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {                                \
      forward_row(scores, scratch, rows.visible(row), rows.keys, by_two);                                \
    }                                                                                                    \
  }                                                                                                      \
  GYRE_CPU_KERNEL void backward_kernel(T* grad, const T* probabilities, const Rows& rows, float scale) { \
    for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, probabilities += rows.keys) {      \
      backward_row(grad, probabilities, rows.visible(row), rows.keys, scale);                            \
    }                                                                                                    \
  }
GYRE_ATTENTION_SOFTMAX(float)
GYRE_ATTENTION_SOFTMAX(Bf16)
#undef GYRE_ATTENTION_SOFTMAX

GYRE_CPU_KERNEL void forward_kernel(Bf16* scores, float* scratch, SoftmaxRow* into, const Rows& rows, float by_two) {
  for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {
    into[row] = forward_row(scores, scratch, rows.visible(row), rows.keys, by_two);
  }
}

GYRE_CPU_KERNEL void backward_kernel(Bf16* grad, Bf16* scores, const SoftmaxRow* of, const Rows& rows, float scale,
                                     float by_two) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, scores += rows.keys) {
    backward_row(grad, scores, of[row], rows.visible(row), rows.keys, scale, by_two);
  }
}

GYRE_CPU_KERNEL void part_kernel(Bf16* grad, Bf16* scores, const SoftmaxRow* of, const float* row_sums,
                                 const Rows& rows, float scale, float by_two) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, scores += rows.keys) {
    backward_part_of_row(grad, scores, of[row], row_sums[row], rows.visible(row), rows.keys, scale, by_two);
  }
}

GYRE_CPU_KERNEL void row_sums_kernel(const Bf16* grad, const Bf16* output, int64_t stride, int64_t rows, int64_t size,
                                     float* row_sums) {
  for (int64_t row = 0; row < rows; ++row, grad += size, output += stride) {
    row_sums[row] = cpu::lane_sum(size, [=](int64_t i) { return load(grad + i) * load(output + i); });
  }
}

float by_two(double scale) {
  return static_cast<float>(scale * std::numbers::log2e);
}

template <typename T>
void cpu_forward(at::Tensor& scores, double scale, bool causal) {
  std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(scores.size(-1))));
  forward_kernel(scores.data_ptr<T>(), scratch.data(), Rows(scores, causal), by_two(scale));
}

template <typename T>
void cpu_backward(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  backward_kernel(grad.data_ptr<T>(), probabilities.data_ptr<T>(), Rows(grad, causal), static_cast<float>(scale));
}

}  // namespace

void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  if (scores.is_cpu() && scores.scalar_type() == at::kFloat) return cpu_forward<float>(scores, scale, causal);
  if (scores.is_cpu() && scores.scalar_type() == at::kBFloat16) return cpu_forward<Bf16>(scores, scale, causal);
  portable::attention_softmax_in_place(scores, scale, causal);
}

void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  if (grad.is_cpu() && grad.scalar_type() == at::kFloat) return cpu_backward<float>(grad, probabilities, scale, causal);
  if (grad.is_cpu() && grad.scalar_type() == at::kBFloat16) {
    return cpu_backward<Bf16>(grad, probabilities, scale, causal);
  }
  portable::attention_softmax_backward_in_place(grad, probabilities, scale, causal);
}

void cpu::attention_softmax(Bf16* scores, float* scratch, SoftmaxRow* into, int64_t rows, int64_t keys, double scale,
                            bool causal) {
  forward_kernel(scores, scratch, into, Rows(rows, rows, keys, causal), by_two(scale));
}

void cpu::attention_softmax_backward(Bf16* grad, Bf16* scores, const SoftmaxRow* of, int64_t rows, int64_t keys,
                                     double scale, bool causal) {
  backward_kernel(grad, scores, of, Rows(rows, rows, keys, causal), static_cast<float>(scale), by_two(scale));
}

void cpu::attention_softmax_backward_of_part(Bf16* grad, Bf16* scores, const SoftmaxRow* of, const float* row_sums,
                                             int64_t rows, int64_t keys, double scale, bool causal) {
  part_kernel(grad, scores, of, row_sums, Rows(rows, rows, keys, causal), static_cast<float>(scale), by_two(scale));
}

void cpu::attention_row_sums(const Bf16* grad_output, const Bf16* output, int64_t stride, int64_t rows, int64_t size,
                             float* row_sums) {
  row_sums_kernel(grad_output, output, stride, rows, size, row_sums);
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
