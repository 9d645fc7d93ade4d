#include "gyre/kernels/attention_softmax.h"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/portable.h"

namespace gyre {
namespace {

using cpu::LanePair;
using cpu::Lanes;
using cpu::load_pair;
using cpu::store_pair;

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

GYRE_INLINE void larger(Lanes& most, const LanePair& x) {
  most = x.a > most ? x.a : most;
  most = x.b > most ? x.b : most;
}

GYRE_INLINE void multiply(LanePair& x, float factor) {
  x.a *= factor;
  x.b *= factor;
}

// 2^(by_two * x - shift)
struct Power {
  float by_two, shift;
  GYRE_INLINE void operator()(LanePair& x) const {
    cpu::exp2_negative<cpu::LaneBits, Lanes>(by_two * x.a - shift, x.a);
    cpu::exp2_negative<cpu::LaneBits, Lanes>(by_two * x.b - shift, x.b);
  }
};

template <typename T>
GYRE_INLINE void forward_rows(T* scores, float* scratch, float* shifts, float* factors, const Rows& rows, float scale) {
  constexpr int64_t kSize = LanePair::kSize;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const float by_two = scale * std::numbers::log2e_v<float>;
  for (int64_t row = 0; row < rows.count; ++row, scores += rows.keys) {
    const int64_t visible = rows.visible(row), whole = visible / kSize * kSize;
    const int64_t rest = visible - whole, there = rows.keys - whole;
    LanePair x;
    Lanes most = Lanes{} + kLowest;
    for (int64_t i = 0; i < whole; i += kSize) {
      load_pair(scores + i, x);
      larger(most, x);
    }
    if (rest > 0) {
      cpu::load_rest(scores + whole, rest, there, x);
      cpu::keep_first<T>(x, rest, kLowest);
      larger(most, x);
    }
    const Power power{by_two, by_two * cpu::largest(most)};
    Lanes sum{};
    for (int64_t i = 0; i < whole; i += kSize) {
      load_pair(scores + i, x);
      power(x);
      store_pair(scratch + i, x);
      sum += x.a + x.b;
    }
    if (rest > 0) {
      cpu::load_rest(scores + whole, rest, there, x);
      power(x);
      cpu::keep_first<T>(x, rest, 0);
      sum += x.a + x.b;
    }
    const float factor = 1.0f / cpu::total(sum);
    if (rest > 0) {
      multiply(x, factor);
      cpu::store_rest(scores + whole, rest, there, x);
    }
    for (int64_t i = 0; i < whole; i += kSize) {
      load_pair(scratch + i, x);
      multiply(x, factor);
      store_pair(scores + i, x);
    }
    hide(scores, visible, rows.keys);
    shifts[row] = power.shift;
    factors[row] = factor;
  }
}

struct RowGradient {
  Power power;
  float factor, scale, dot;
  // Scores become probabilities, grad the gradient by the scores.
  GYRE_INLINE void operator()(LanePair& scores, LanePair& grad) const {
    power(scores);
    multiply(scores, factor);
    grad.a = scale * scores.a * (grad.a - dot);
    grad.b = scale * scores.b * (grad.b - dot);
  }
};

template <typename T>
GYRE_INLINE void backward_rows(T* grad, T* scores, const float* shifts, const float* factors, const float* dots,
                               const Rows& rows, float scale) {
  constexpr int64_t kSize = LanePair::kSize;
  const float by_two = scale * std::numbers::log2e_v<float>;
  for (int64_t row = 0; row < rows.count; ++row, grad += rows.keys, scores += rows.keys) {
    const RowGradient gradient{{by_two, shifts[row]}, factors[row], scale, dots[row]};
    const int64_t visible = rows.visible(row), whole = visible / kSize * kSize;
    const int64_t rest = visible - whole, there = rows.keys - whole;
    LanePair x, g;
    for (int64_t i = 0; i < whole; i += kSize) {
      load_pair(scores + i, x);
      load_pair(grad + i, g);
      gradient(x, g);
      store_pair(scores + i, x);
      store_pair(grad + i, g);
    }
    if (rest > 0) {
      cpu::load_rest(scores + whole, rest, there, x);
      cpu::load_rest(grad + whole, rest, there, g);
      gradient(x, g);
      cpu::store_rest(scores + whole, rest, there, x);
      cpu::store_rest(grad + whole, rest, there, g);
    }
    hide(scores, visible, rows.keys);
    hide(grad, visible, rows.keys);
  }
}

#define GYRE_ATTENTION_SOFTMAX(T)                                                                                 \
  GYRE_CPU_KERNEL void forward_kernel(T* scores, float* scratch, float* shifts, float* factors, const Rows& rows, \
                                      float scale) {                                                              \
    forward_rows(scores, scratch, shifts, factors, rows, scale);                                                  \
  }                                                                                                               \
  GYRE_CPU_KERNEL void backward_kernel(T* grad, T* scores, const float* shifts, const float* factors,             \
                                       const float* dots, const Rows& rows, float scale) {                        \
    backward_rows(grad, scores, shifts, factors, dots, rows, scale);                                              \
  }
GYRE_ATTENTION_SOFTMAX(float)
GYRE_ATTENTION_SOFTMAX(c10::BFloat16)
#undef GYRE_ATTENTION_SOFTMAX

GYRE_CPU_KERNEL void dots_kernel(const c10::BFloat16* a, const c10::BFloat16* b, int64_t stride, int64_t rows,
                                 int64_t size, float* dots) {
  const int64_t whole = size / LanePair::kSize * LanePair::kSize, rest = size - whole;
  for (int64_t row = 0; row < rows; ++row, a += stride, b += stride) {
    LanePair x, y;
    Lanes sum{};
    for (int64_t i = 0; i < whole; i += LanePair::kSize) {
      load_pair(a + i, x);
      load_pair(b + i, y);
      sum += x.a * y.a + x.b * y.b;
    }
    if (rest > 0) {
      cpu::load_rest(a + whole, rest, rest, x);
      cpu::load_rest(b + whole, rest, rest, y);
      sum += x.a * y.a + x.b * y.b;
    }
    dots[row] = cpu::total(sum);
  }
}

template <typename T>
SoftmaxRows cpu_forward(at::Tensor& scores, double scale, bool causal) {
  std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(scores.size(-1))));
  const auto numbers = [&] { return at::empty({scores.size(0), scores.size(1)}, scores.options().dtype(at::kFloat)); };
  SoftmaxRows rows{numbers(), numbers()};
  forward_kernel(scores.data_ptr<T>(), scratch.data(), rows.shift.template data_ptr<float>(),
                 rows.factor.template data_ptr<float>(), Rows(scores, causal), static_cast<float>(scale));
  return rows;
}

template <typename T>
void cpu_backward(at::Tensor& grad, at::Tensor& scores, const SoftmaxRows& rows, const at::Tensor& dots, double scale,
                  bool causal) {
  const at::Tensor shifts = rows.shift.contiguous(), factors = rows.factor.contiguous(), own_dots = dots.contiguous();
  backward_kernel(grad.data_ptr<T>(), scores.data_ptr<T>(), shifts.data_ptr<float>(), factors.data_ptr<float>(),
                  own_dots.data_ptr<float>(), Rows(grad, causal), static_cast<float>(scale));
}

// What a causal row does not see: (rows, keys).
at::Tensor hidden(const at::Tensor& scores) {
  const int64_t rows = scores.size(-2), keys = scores.size(-1);
  return at::ones({rows, keys}, scores.options().dtype(at::kBool)).triu_(keys - rows + 1);
}

// log2(e) * scale * score.
at::Tensor exponents(const at::Tensor& scores, double scale, bool causal) {
  at::Tensor visible = scores.to(portable::wide_type(scores)) * (std::numbers::log2e * scale);
  if (causal) visible.masked_fill_(hidden(scores), -std::numeric_limits<double>::infinity());
  return visible;
}

}  // namespace

SoftmaxRows attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  if (scores.is_cpu() && scores.scalar_type() == at::kFloat) return cpu_forward<float>(scores, scale, causal);
  if (scores.is_cpu() && scores.scalar_type() == at::kBFloat16) {
    return cpu_forward<c10::BFloat16>(scores, scale, causal);
  }
  return portable::attention_softmax_in_place(scores, scale, causal);
}

void attention_softmax_backward_in_place(at::Tensor& grad, at::Tensor& scores, const SoftmaxRows& rows,
                                         const at::Tensor& dots, double scale, bool causal) {
  if (grad.is_cpu() && grad.scalar_type() == at::kFloat) {
    return cpu_backward<float>(grad, scores, rows, dots, scale, causal);
  }
  if (grad.is_cpu() && grad.scalar_type() == at::kBFloat16) {
    return cpu_backward<c10::BFloat16>(grad, scores, rows, dots, scale, causal);
  }
  portable::attention_softmax_backward_in_place(grad, scores, rows, dots, scale, causal);
}

void cpu::attention_softmax(c10::BFloat16* scores, float* scratch, const SoftmaxRowPointers& of, int64_t rows,
                            int64_t keys, double scale, bool causal) {
  forward_kernel(scores, scratch, of.shift, of.factor, Rows(rows, rows, keys, causal), static_cast<float>(scale));
}

void cpu::attention_softmax_backward(c10::BFloat16* grad, c10::BFloat16* scores, const SoftmaxRowPointers& of,
                                     const float* dots, int64_t rows, int64_t keys, double scale, bool causal) {
  backward_kernel(grad, scores, of.shift, of.factor, dots, Rows(rows, rows, keys, causal), static_cast<float>(scale));
}

void cpu::row_dots(const c10::BFloat16* a, const c10::BFloat16* b, int64_t stride, int64_t rows, int64_t size,
                   float* dots) {
  dots_kernel(a, b, stride, rows, size, dots);
}

namespace portable {

SoftmaxRows attention_softmax_in_place(at::Tensor& scores, double scale, bool causal) {
  const at::Tensor visible = exponents(scores, scale, causal);
  const at::Tensor shift = visible.amax(-1);
  const at::Tensor powers = at::exp2(visible - shift.unsqueeze(-1));
  const at::Tensor factor = powers.sum(-1).reciprocal();
  scores.copy_(powers * factor.unsqueeze(-1));
  return {shift, factor};
}

void attention_softmax_backward_in_place(at::Tensor& grad, at::Tensor& scores, const SoftmaxRows& rows,
                                         const at::Tensor& dots, double scale, bool causal) {
  const at::Tensor powers = at::exp2(exponents(scores, scale, causal) - rows.shift.unsqueeze(-1));
  const at::Tensor probabilities = powers * rows.factor.unsqueeze(-1);
  grad.copy_((grad.to(wide_type(grad)) - dots.unsqueeze(-1)) * probabilities * scale);
  scores.copy_(probabilities);
}

}  // namespace portable

}  // namespace gyre
