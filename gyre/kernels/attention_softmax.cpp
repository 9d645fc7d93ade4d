#include "gyre/kernels/attention_softmax.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "gyre/kernels/cpu_dispatch.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/tensors/wide_type.h"

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

constexpr int64_t kKeysAtOnce = 2 * int64_t{kLanes};

// The rows of all matrices, one after the other. Only their visible parts are computed.
struct Rows {
  int64_t count = 0, rows_per_matrix = 0, keys = 0;
  bool causal = false;
  Rows(int64_t row_count, int64_t matrix_rows, int64_t row_keys, bool is_causal)
      : count(row_count), rows_per_matrix(matrix_rows), keys(row_keys), causal(is_causal) {}
  Rows(const at::Tensor& scores, bool is_causal)
      : Rows(scores.numel() / scores.size(-1), scores.size(-2), scores.size(-1), is_causal) {}
  GYRE_INLINE int64_t visible(int64_t row) const {
    return causal ? keys - rows_per_matrix + row % rows_per_matrix + 1 : keys;
  }
};

template <typename T>
GYRE_INLINE void hide(T* row, int64_t visible, int64_t keys) {
  std::memset(static_cast<void*>(row + visible), 0, static_cast<size_t>(keys - visible) * sizeof(T));
}

// Stores the `visible` values of scratch times `factor`, and zeros for the other keys.
template <typename T>
GYRE_INLINE void store_row(const float* scratch, float factor, T* __restrict to, int64_t visible, int64_t keys) {
  const int64_t whole = visible / cpu::kLanes * cpu::kLanes;
  cpu::for_lanes(whole, [=](int64_t i) { store(to + i, scratch[i] * factor); });
  for (int64_t i = whole; i < visible; ++i) store(to + i, scratch[i] * factor);
  hide(to, visible, keys);
}

// log2_scale: the scale times log2(e), since 2^x is faster than e^x.
template <typename T>
GYRE_INLINE SoftmaxRow forward_row(T* scores, float* __restrict scratch, int64_t visible, int64_t keys,
                                   float log2_scale) {
  const int64_t whole = cpu::whole_lanes(visible);
  cpu::load_row(scores, scratch, visible);
  const float shift = log2_scale * cpu::lane_max(scratch, whole);
  const float sum =
      cpu::lane_sum(whole, [=](int64_t i) { return scratch[i] = cpu::exp2_negative(log2_scale * scratch[i] - shift); });
  const float factor = 1.0f / sum;
  store_row(scratch, factor, scores, visible, keys);
  return {shift, factor};
}

// The backward of one row from its probabilities.
template <typename T>
GYRE_INLINE void backward_row(T* __restrict grad, const T* __restrict probabilities, int64_t visible, int64_t keys,
                              float scale) {
  // Beyond the visible keys probabilities are zero, so the gradients computed there are zero too.
  const int64_t count = std::min(cpu::whole_lanes(visible), keys), whole = count / kLanes * kLanes;
  const float dot = cpu::lane_sum(count, [=](int64_t i) { return load(grad + i) * load(probabilities + i); });
  const auto result = [=](int64_t i) { store(grad + i, scale * load(probabilities + i) * (load(grad + i) - dot)); };
  cpu::for_lanes(whole, result);
  for (int64_t i = whole; i < count; ++i) result(i);
  hide(grad, count, keys);
}

// Recomputes a probability with the same operations as forward_row, so to the bit.
GYRE_INLINE float probability(float score, const SoftmaxRow& softmax, float log2_scale) {
  return cpu::rounded<Bf16>(cpu::exp2_negative(log2_scale * score - softmax.shift) * softmax.factor);
}

// Turns kKeysAtOnce scores into probabilities, and adds probability * grad to `sums`. kPart: only the first `count`
// keys are visible; the probabilities of the others are zero.
template <bool kPart>
GYRE_INLINE void probabilities(Bf16* __restrict scores, const Bf16* __restrict grad, float* __restrict sums,
                               const SoftmaxRow& softmax, float log2_scale, int count) {
  for (int word = 0; word < kLanes; ++word) {
    const Two score = load_two(scores + 2 * word), grads = load_two(grad + 2 * word);
    Two p{probability(score.first, softmax, log2_scale), probability(score.second, softmax, log2_scale)};
    if (kPart) p = {2 * word < count ? p.first : 0, 2 * word + 1 < count ? p.second : 0};
    store_two(scores + 2 * word, p);
    sums[word] += p.first * grads.first;
    sums[word] += p.second * grads.second;
  }
}

// grad becomes scale * P * (grad - dot), P being the `probabilities`, for kKeysAtOnce keys.
GYRE_INLINE void gradients(const Bf16* __restrict probabilities, Bf16* __restrict grad, float scale, float dot) {
  for (int word = 0; word < kLanes; ++word) {
    const Two p = load_two(probabilities + 2 * word), grads = load_two(grad + 2 * word);
    store_two(grad + 2 * word, {scale * p.first * (grads.first - dot), scale * p.second * (grads.second - dot)});
  }
}

// Zero-padded copies of a row's last keys, used where fewer than kKeysAtOnce elements are left in the row.
struct LastKeys {
  std::array<Bf16, kKeysAtOnce> scores{}, grad{};
  GYRE_INLINE void copy_from(const Bf16* row_scores, const Bf16* row_grad, int64_t count) {
    std::memcpy(static_cast<void*>(scores.data()), row_scores, static_cast<size_t>(count) * sizeof(Bf16));
    std::memcpy(static_cast<void*>(grad.data()), row_grad, static_cast<size_t>(count) * sizeof(Bf16));
  }
  GYRE_INLINE void copy_to(Bf16* row_scores, Bf16* row_grad, int64_t count) const {
    std::memcpy(static_cast<void*>(row_scores), scores.data(), static_cast<size_t>(count) * sizeof(Bf16));
    std::memcpy(static_cast<void*>(row_grad), grad.data(), static_cast<size_t>(count) * sizeof(Bf16));
  }
};

// The backward of one row from its scores, which become probabilities.
GYRE_INLINE void backward_row(Bf16* grad, Bf16* scores, const SoftmaxRow& softmax, int64_t visible, int64_t keys,
                              float scale, float log2_scale) {
  const int64_t whole = visible / kKeysAtOnce * kKeysAtOnce;
  const auto rest = static_cast<int>(visible - whole);
  std::array<float, kLanes> sums{};
  for (int64_t i = 0; i < whole; i += kKeysAtOnce) {
    probabilities<false>(scores + i, grad + i, sums.data(), softmax, log2_scale, 0);
  }
  LastKeys copies;
  const bool copied = rest > 0 && keys - whole < kKeysAtOnce;
  if (copied) copies.copy_from(scores + whole, grad + whole, rest);
  Bf16 *last_scores = copied ? copies.scores.data() : scores + whole,
       *last = copied ? copies.grad.data() : grad + whole;
  if (rest > 0) probabilities<true>(last_scores, last, sums.data(), softmax, log2_scale, rest);
  const float dot = cpu::total(sums);
  for (int64_t i = 0; i < whole; i += kKeysAtOnce) gradients(scores + i, grad + i, scale, dot);
  if (rest > 0) gradients(last_scores, last, scale, dot);
  if (copied) copies.copy_to(scores + whole, grad + whole, rest);
  hide(scores, visible, keys);
  hide(grad, visible, keys);
}

// Turns kKeysAtOnce scores into probabilities P, and grad into scale * P * (grad - dot). kPart as in probabilities().
template <bool kPart>
GYRE_INLINE void probabilities_and_gradients(Bf16* __restrict scores, Bf16* __restrict grad, const SoftmaxRow& softmax,
                                             float log2_scale, float scale, float dot, int count) {
  for (int word = 0; word < kLanes; ++word) {
    const Two score = load_two(scores + 2 * word), grads = load_two(grad + 2 * word);
    Two p{probability(score.first, softmax, log2_scale), probability(score.second, softmax, log2_scale)};
    if (kPart) p = {2 * word < count ? p.first : 0, 2 * word + 1 < count ? p.second : 0};
    store_two(scores + 2 * word, p);
    store_two(grad + 2 * word, {scale * p.first * (grads.first - dot), scale * p.second * (grads.second - dot)});
  }
}

// The backward of one row of a tile, whose dot is known, so that one pass is enough.
GYRE_INLINE void backward_tile_row(Bf16* grad, Bf16* scores, const SoftmaxRow& softmax, float dot, int64_t visible,
                                   int64_t keys, float scale, float log2_scale) {
  const int64_t whole = visible / kKeysAtOnce * kKeysAtOnce;
  const auto rest = static_cast<int>(visible - whole);
  for (int64_t i = 0; i < whole; i += kKeysAtOnce) {
    probabilities_and_gradients<false>(scores + i, grad + i, softmax, log2_scale, scale, dot, 0);
  }
  if (rest > 0 && keys - whole >= kKeysAtOnce) {
    probabilities_and_gradients<true>(scores + whole, grad + whole, softmax, log2_scale, scale, dot, rest);
  } else if (rest > 0) {
    LastKeys copies;
    copies.copy_from(scores + whole, grad + whole, rest);
    probabilities_and_gradients<true>(copies.scores.data(), copies.grad.data(), softmax, log2_scale, scale, dot, rest);
    copies.copy_to(scores + whole, grad + whole, rest);
  }
  hide(scores, visible, keys);
  hide(grad, visible, keys);
}

#define GYRE_ATTENTION_SOFTMAX(T)                                                                        \
  GYRE_CPU_KERNEL void forward_kernel(T* scores, float* scratch, const Rows& rows, float log2_scale) {   \
    for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {                                \
      forward_row(scores, scratch, rows.visible(row), rows.keys, log2_scale);                            \
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

GYRE_CPU_KERNEL void forward_kernel(Bf16* scores, float* scratch, SoftmaxRow* softmax, const Rows& rows,
                                    float log2_scale) {
  for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {
    softmax[row] = forward_row(scores, scratch, rows.visible(row), rows.keys, log2_scale);
  }
}

GYRE_CPU_KERNEL void backward_kernel(Bf16* grad, Bf16* scores, const SoftmaxRow* softmax, const Rows& rows, float scale,
                                     float log2_scale) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, scores += rows.keys) {
    backward_row(grad, scores, softmax[row], rows.visible(row), rows.keys, scale, log2_scale);
  }
}

GYRE_CPU_KERNEL void tile_kernel(Bf16* grad, Bf16* scores, const SoftmaxRow* softmax, const float* row_sums,
                                 const Rows& rows, float scale, float log2_scale) {
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, scores += rows.keys) {
    backward_tile_row(grad, scores, softmax[row], row_sums[row], rows.visible(row), rows.keys, scale, log2_scale);
  }
}

GYRE_CPU_KERNEL void row_sums_kernel(const Bf16* grad, const Bf16* output, int64_t stride, int64_t rows, int64_t size,
                                     float* row_sums) {
  for (int64_t row = 0; row < rows; ++row, grad += size, output += stride) {
    row_sums[row] = cpu::lane_sum(size, [=](int64_t i) { return load(grad + i) * load(output + i); });
  }
}

float log2_scale(double scale) {
  return static_cast<float>(scale * std::numbers::log2e);
}

template <typename T>
void cpu_forward(at::Tensor& scores, double scale, bool causal) {
  std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(scores.size(-1))));
  forward_kernel(scores.data_ptr<T>(), scratch.data(), Rows(scores, causal), log2_scale(scale));
}

template <typename T>
void cpu_backward(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  backward_kernel(grad.data_ptr<T>(), probabilities.data_ptr<T>(), Rows(grad, causal), static_cast<float>(scale));
}

}  // namespace

void attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  cpu::dispatch(
      scores, [&]<typename T>() { cpu_forward<T>(scores, scale, causal); },
      [&] { portable::attention_softmax_in_place(scores, scale, causal); });
}

void attention_softmax_backward_in_place(at::Tensor& grad, const at::Tensor& probabilities, double scale, bool causal) {
  cpu::dispatch(
      grad, [&]<typename T>() { cpu_backward<T>(grad, probabilities, scale, causal); },
      [&] { portable::attention_softmax_backward_in_place(grad, probabilities, scale, causal); });
}

void cpu::attention_softmax(Bf16* scores, float* scratch, SoftmaxRow* softmax, int64_t rows, int64_t keys, double scale,
                            bool causal) {
  forward_kernel(scores, scratch, softmax, Rows(rows, rows, keys, causal), log2_scale(scale));
}

void cpu::attention_softmax_backward(Bf16* grad, Bf16* scores, const SoftmaxRow* softmax, int64_t rows, int64_t keys,
                                     double scale, bool causal) {
  backward_kernel(grad, scores, softmax, Rows(rows, rows, keys, causal), static_cast<float>(scale), log2_scale(scale));
}

void cpu::attention_softmax_backward_of_tile(Bf16* grad, Bf16* scores, const SoftmaxRow* softmax, const float* row_sums,
                                             int64_t rows, int64_t keys, double scale, bool causal) {
  tile_kernel(grad, scores, softmax, row_sums, Rows(rows, rows, keys, causal), static_cast<float>(scale),
              log2_scale(scale));
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
  // Hidden keys need no mask: their probabilities are zero.
  const at::Tensor g = grad.to(wide_type(grad)), p = probabilities.to(wide_type(grad));
  grad.copy_((g - (g * p).sum(-1, /*keepdim=*/true)) * p * scale);
}

}  // namespace portable

}  // namespace gyre
