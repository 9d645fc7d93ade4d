#include "gyre/optim/parameter/mixed_kernels.h"

#include <ATen/ATen.h>

#include "gyre/kernels/cpu_math.h"

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
GYRE_CPU_KERNEL void convert(c10::BFloat16* __restrict y, const float* __restrict x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) cpu::store(y + i, x[i]);
}

// Whether a loop did it.
bool combine(const at::Tensor& y, const at::Tensor& x, double a, double b) {
  if (!cpu::is_plain(y, at::kFloat)) return false;
  const auto fa = static_cast<float>(a), fb = static_cast<float>(b);
  if (cpu::is_plain(x, at::kBFloat16)) {
    combine_bf16(y.data_ptr<float>(), x.data_ptr<c10::BFloat16>(), y.numel(), fa, fb);
    return true;
  }
  if (cpu::is_plain(x, at::kFloat)) {
    combine_single(y.data_ptr<float>(), x.data_ptr<float>(), y.numel(), fa, fb);
    return true;
  }
  return false;
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

at::Tensor to_bf16(const at::Tensor& x) {
  if (x.dim() == 2 && !x.is_contiguous() && x.t().is_contiguous()) return to_bf16(x.t()).t();
  if (!cpu::is_plain(x, at::kFloat)) return portable::to_bf16(x);
  at::Tensor rounded = at::empty(x.sizes(), x.options().dtype(at::kBFloat16));
  convert(rounded.data_ptr<c10::BFloat16>(), x.data_ptr<float>(), x.numel());
  return rounded;
}

void average_into(const at::Tensor& average, const at::Tensor& x, double beta) {
  if (!combine(average, x, beta, 1 - beta)) portable::average_into(average, x, beta);
}

void subtract_scaled(const at::Tensor& w, const at::Tensor& x, double rate, double keep) {
  if (!combine(w, x, keep, -rate)) portable::subtract_scaled(w, x, rate, keep);
}

}  // namespace gyre
