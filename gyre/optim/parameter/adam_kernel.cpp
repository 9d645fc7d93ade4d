#include "gyre/optim/parameter/adam_kernel.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "gyre/kernels/cpu_math.h"

namespace gyre {
namespace {

// The factors as the loop needs them.
struct Scalars {
  float beta1, rest1, beta2, rest2, inverse1, inverse_root2, epsilon;
};
Scalars scalars(const AdamFactors& f) {
  return {static_cast<float>(f.beta1),           static_cast<float>(1 - f.beta1),
          static_cast<float>(f.beta2),           static_cast<float>(1 - f.beta2),
          static_cast<float>(1 / f.correction1), static_cast<float>(1 / std::sqrt(f.correction2)),
          static_cast<float>(f.epsilon)};
}

// Each element is by itself, so vectors change nothing. Rounding of products is the compiler's, fixed per machine.
// to(i, w[i]) takes what the weight becomes.
template <typename To>
GYRE_INLINE void step_elements(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
                               int64_t count, Scalars s, float rate, float keep, float factor, To to) {
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = factor * g[i];
    m[i] = s.beta1 * m[i] + s.rest1 * gradient;
    v[i] = s.beta2 * v[i] + s.rest2 * gradient * gradient;
    w[i] = keep * w[i] - rate * (m[i] * s.inverse1) / (std::sqrt(v[i]) * s.inverse_root2 + s.epsilon);
    to(i, w[i]);
  }
}
GYRE_CPU_KERNEL void step_loop(float* w, const float* g, float* m, float* v, int64_t count, Scalars s, float rate,
                               float keep, float factor) {
  step_elements(w, g, m, v, count, s, rate, keep, factor, [](int64_t, float) {});
}
GYRE_CPU_KERNEL void rounding_step_loop(float* w, const float* g, float* m, float* v, c10::BFloat16* __restrict rounded,
                                        int64_t count, Scalars s, float rate, float keep, float factor) {
  step_elements(w, g, m, v, count, s, rate, keep, factor, [=](int64_t i, float x) { cpu::store(rounded + i, x); });
}

GYRE_CPU_KERNEL void direction_loop(float* __restrict g, float* __restrict m, float* __restrict v, int64_t count,
                                    Scalars s) {
  for (int64_t i = 0; i < count; ++i) {
    m[i] = s.beta1 * m[i] + s.rest1 * g[i];
    v[i] = s.beta2 * v[i] + s.rest2 * g[i] * g[i];
    g[i] = (m[i] * s.inverse1) / (std::sqrt(v[i]) * s.inverse_root2 + s.epsilon);
  }
}

bool is_plain(std::initializer_list<at::Tensor> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return cpu::is_plain(t, at::kFloat); });
}

// (m / c1) / (sqrt(v / c2) + eps), the moments having taken in the gradient.
at::Tensor direction_of(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                        const AdamFactors& f) {
  exp_avg.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  exp_avg_sq.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
  return exp_avg.div(f.correction1).div_(exp_avg_sq.sqrt().div_(std::sqrt(f.correction2)).add_(f.epsilon));
}

}  // namespace

AdamFactors adam_factors(double beta1, double beta2, double epsilon, int64_t update) {
  const auto t = static_cast<double>(update);
  return {beta1, beta2, epsilon, 1 - std::pow(beta1, t), 1 - std::pow(beta2, t)};
}

void portable::adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                          const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay,
                          double factor, const at::Tensor& rounded) {
  const at::Tensor direction = direction_of(factor == 1 ? gradient : gradient * factor, exp_avg, exp_avg_sq, factors);
  weight.mul_(1 - decay).sub_(direction, rate);
  if (rounded.defined()) rounded.copy_(weight);
}

void portable::adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                              const AdamFactors& factors) {
  gradient.copy_(direction_of(gradient, exp_avg, exp_avg_sq, factors));
}

void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor,
                const at::Tensor& rounded) {
  const bool rounds = rounded.defined();
  if (!is_plain({weight, gradient, exp_avg, exp_avg_sq}) || (rounds && !cpu::is_plain(rounded, at::kBFloat16))) {
    return portable::adamw_step(weight, gradient, exp_avg, exp_avg_sq, factors, rate, decay, factor, rounded);
  }
  auto *w = weight.data_ptr<float>(), *g = gradient.data_ptr<float>(), *m = exp_avg.data_ptr<float>(),
       *v = exp_avg_sq.data_ptr<float>();
  const int64_t count = weight.numel();
  const Scalars s = scalars(factors);
  const auto step = static_cast<float>(rate), keep = static_cast<float>(1 - decay), by = static_cast<float>(factor);
  if (rounds) {
    rounding_step_loop(w, g, m, v, rounded.data_ptr<c10::BFloat16>(), count, s, step, keep, by);
  } else {
    step_loop(w, g, m, v, count, s, step, keep, by);
  }
}

void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors) {
  if (!is_plain({gradient, exp_avg, exp_avg_sq})) {
    return portable::adam_direction(gradient, exp_avg, exp_avg_sq, factors);
  }
  direction_loop(gradient.data_ptr<float>(), exp_avg.data_ptr<float>(), exp_avg_sq.data_ptr<float>(), gradient.numel(),
                 scalars(factors));
}

}  // namespace gyre
