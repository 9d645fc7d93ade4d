// The element-wise part of Adam, in one pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct AdamFactors {
  double beta1, beta2, epsilon;
  double correction1, correction2;  // 1 - beta1^t, 1 - beta2^t
};
AdamFactors adam_factors(double beta1, double beta2, double epsilon, int64_t update);

// g is `gradient` times `factor`, which saves a pass over it where it is clipped.
// m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2;
// w <- w (1 - decay);  w <- w - rate * (m / c1) / (sqrt(v / c2) + eps)       (Loshchilov and Hutter, 2019, algorithm 2)
// All fp32 and of the same shape. `decay` is learning rate times weight decay. rounded: bf16, becomes w, or undefined.
void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1,
                const at::Tensor& rounded = {});

// As above for moments alone: returns nothing but turns `gradient` into (m / c1) / (sqrt(v / c2) + eps).
void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors);

namespace portable {
void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1,
                const at::Tensor& rounded = {});
void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors);
}  // namespace portable

}  // namespace gyre
