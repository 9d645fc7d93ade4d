#include "gyre/optim/parameter/mixed_kernels.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/rows.h"
#include "gyre/optim/parameter/split_loops.h"

namespace gyre {
namespace {

// y <- a y + b x
template <typename T>
GYRE_INLINE void combine(float* __restrict y, const T* __restrict x, int64_t count, float a, float b) {
  for (int64_t i = 0; i < count; ++i) y[i] = a * y[i] + b * cpu::load(x + i);
}
GYRE_CPU_KERNEL void combine_single(float* __restrict y, const float* __restrict x, int64_t count, float a, float b) {
  combine(y, x, count, a, b);
}
GYRE_CPU_KERNEL void combine_bf16(float* __restrict y, const c10::BFloat16* __restrict x, int64_t count, float a,
                                  float b) {
  combine(y, x, count, a, b);
}

// w <- a w + b x
template <typename T>
GYRE_INLINE void combine(SplitElements w, const T* __restrict x, int64_t count, float a, float b) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) w.store(i, a * w.load(i) + b * cpu::load(x + i));
}
GYRE_CPU_KERNEL void combine_split(SplitElements w, const float* x, int64_t count, float a, float b) {
  combine(w, x, count, a, b);
}
GYRE_CPU_KERNEL void combine_split(SplitElements w, const c10::BFloat16* x, int64_t count, float a, float b) {
  combine(w, x, count, a, b);
}

template <typename A, typename B>
GYRE_INLINE void subtract(float* __restrict y, const A* __restrict a, const B* __restrict b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::load(a + i) - cpu::load(b + i);
}
GYRE_CPU_KERNEL void subtract_row(float* y, const float* a, const float* b, int64_t count) {
  subtract(y, a, b, count);
}
GYRE_CPU_KERNEL void subtract_row(float* y, const float* a, const c10::BFloat16* b, int64_t count) {
  subtract(y, a, b, count);
}
GYRE_CPU_KERNEL void subtract_row(float* y, const c10::BFloat16* a, const float* b, int64_t count) {
  subtract(y, a, b, count);
}
GYRE_CPU_KERNEL void subtract_row(float* y, const c10::BFloat16* a, const c10::BFloat16* b, int64_t count) {
  subtract(y, a, b, count);
}

bool has_plain_rows(const at::Tensor& x) {
  return x.is_cpu() && x.dim() == 2 && x.stride(1) == 1;
}

template <typename A, typename B>
void subtract_rows(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  cpu::for_rows(y.size(0), y.size(1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      subtract_row(y.data_ptr<float>() + row * y.stride(0), a.data_ptr<A>() + row * a.stride(0),
                   b.data_ptr<B>() + row * b.stride(0), y.size(1));
    }
  });
}

template <typename A>
bool subtract_rows(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  if (b.scalar_type() == at::kFloat) {
    subtract_rows<A, float>(y, a, b);
  } else if (b.scalar_type() == at::kBFloat16) {
    subtract_rows<A, c10::BFloat16>(y, a, b);
  } else {
    return false;
  }
  return true;
}

// Whether a loop did it.
bool subtracted(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  if (!has_plain_rows(y) || !has_plain_rows(a) || !has_plain_rows(b) || y.scalar_type() != at::kFloat) return false;
  if (a.scalar_type() == at::kFloat) return subtract_rows<float>(y, a, b);
  return a.scalar_type() == at::kBFloat16 && subtract_rows<c10::BFloat16>(y, a, b);
}

template <typename T, typename Kernel>
void combine_rows(const at::Tensor& y, const at::Tensor& x, double a, double b, const Kernel& kernel) {
  float* const to = y.data_ptr<float>();
  const T* from = x.data_ptr<T>();
  const auto pass = [&](int64_t y_at, int64_t x_at, int64_t count) {
    kernel(to + y_at, from + x_at, count, static_cast<float>(a), static_cast<float>(b));
  };
  if (y.is_contiguous() && x.is_contiguous()) {
    cpu::for_elements(y.numel(), [&](int64_t begin, int64_t end) { pass(begin, begin, end - begin); });
  } else {
    cpu::for_rows(y.size(0), y.size(1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) pass(row * y.stride(0), row * x.stride(0), y.size(1));
    });
  }
}

// Whether a loop did it.
bool combine(const at::Tensor& y, const at::Tensor& x, double a, double b) {
  const bool plain = y.is_cpu() && x.is_cpu() && y.is_contiguous() && x.is_contiguous();
  if (y.scalar_type() != at::kFloat || (!plain && (!has_plain_rows(y) || !has_plain_rows(x)))) return false;
  if (x.scalar_type() == at::kBFloat16) {
    combine_rows<c10::BFloat16>(y, x, a, b, combine_bf16);
  } else if (x.scalar_type() == at::kFloat) {
    combine_rows<float>(y, x, a, b, combine_single);
  } else {
    return false;
  }
  return true;
}

}  // namespace

at::Tensor portable::to_bf16(const at::Tensor& x) {
  return x.to(at::kBFloat16);
}

void portable::average_into(const at::Tensor& average, const at::Tensor& x, double beta) {
  average.mul_(beta).add_(x, 1 - beta);
}

void portable::subtract_scaled(const at::Tensor& w, const at::Tensor& x, double rate, double keep) {
  w.mul_(keep).sub_(x, rate);
}

void portable::subtract_scaled(const SplitWeight& w, const at::Tensor& x, double rate, double keep) {
  const at::Tensor whole = portable::joined(w);
  portable::subtract_scaled(whole, x, rate, keep);
  portable::split(whole, w);
}

void portable::set_difference(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  y.copy_(a.to(at::kFloat) - b.to(at::kFloat));
}

at::Tensor to_bf16(const at::Tensor& x) {
  if (x.dim() >= 2 && !x.is_contiguous() && x.mT().is_contiguous()) return to_bf16(x.mT()).mT();
  const bool plain = cpu::is_plain(x, at::kFloat);
  if (!plain && (!has_plain_rows(x) || x.scalar_type() != at::kFloat)) return portable::to_bf16(x);
  at::Tensor rounded = at::empty(x.sizes(), x.options().dtype(at::kBFloat16));
  auto* const to = rounded.data_ptr<c10::BFloat16>();
  const float* from = x.data_ptr<float>();
  if (plain) {
    cpu::for_elements(x.numel(), [&](int64_t begin, int64_t end) {
      cpu::to_bf16(to + begin, 0, from + begin, 0, /*rows=*/1, end - begin);
    });
  } else {
    cpu::for_rows(x.size(0), x.size(1), [&](int64_t begin, int64_t end) {
      cpu::to_bf16(to + begin * x.size(1), x.size(1), from + begin * x.stride(0), x.stride(0), end - begin, x.size(1));
    });
  }
  return rounded;
}

void average_into(const at::Tensor& average, const at::Tensor& x, double beta) {
  if (!combine(average, x, beta, 1 - beta)) portable::average_into(average, x, beta);
}

void subtract_scaled(const at::Tensor& w, const at::Tensor& x, double rate, double keep) {
  if (!combine(w, x, keep, -rate)) portable::subtract_scaled(w, x, rate, keep);
}

void subtract_scaled(const SplitWeight& w, const at::Tensor& x, double rate, double keep) {
  const auto a = static_cast<float>(keep), b = static_cast<float>(-rate);
  const auto pass = [&](const auto* from) {
    const SplitElements to(w);
    cpu::for_elements(
        x.numel(), [&](int64_t begin, int64_t end) { combine_split(to.from(begin), from + begin, end - begin, a, b); });
  };
  if (is_plain(w) && cpu::is_plain(x, at::kFloat)) {
    pass(x.data_ptr<float>());
  } else if (is_plain(w) && cpu::is_plain(x, at::kBFloat16)) {
    pass(x.data_ptr<c10::BFloat16>());
  } else {
    portable::subtract_scaled(w, x, rate, keep);
  }
}

void set_difference(const at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  if (!subtracted(y, a, b)) portable::set_difference(y, a, b);
}

}  // namespace gyre
