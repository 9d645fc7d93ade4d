// The element-wise part of Adam, in one pass over memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gyre/optim/parameter/split_weight.h"

namespace gyre {

struct AdamFactors {
  double beta1, beta2, epsilon;
  double correction1, correction2;  // 1 - beta1^t, 1 - beta2^t
  int64_t update;                   // t
  double gradient_share = 0;        // NAdam's; Adam's is 0
};
AdamFactors adam_factors(double beta1, double beta2, double epsilon, int64_t update);

// g is `gradient` times `factor`, which saves a pass over it where it is clipped.
// m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2;
// w <- w (1 - decay);  w <- w - rate * (m / c1 + share g) / (sqrt(v / c2) + eps)
//                                              (share = 0: Loshchilov and Hutter, 2019, algorithm 2)
// All fp32 and of the same shape, but for the moments, which may be bf16: then the step is made with m and v as they
// are in fp32, and each element kept of them is rounded up or down by chance so that it is right in the mean (Gupta et
// al., 2015, section 3). Rounded to nearest, v would stand still: one update changes it by less than half of bf16's
// last place. Chance is drawn from the gradient's bits and the update's number, so it is the same however parameters
// are shared out. `decay` is learning rate times weight decay.
void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);
// The same of a weight in halves.
void adamw_step(const SplitWeight& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);

// A weight whose step is followed by error feedback (optim/error_feedback.h): where AdamW would subtract u from it, and
// `late`, it becomes w - u - (u - last_step), unless last_step is all zeros; then last_step <- u.
template <typename Weight>
struct FedBack {
  Weight weight;         // at::Tensor or SplitWeight
  at::Tensor last_step;  // fp32
  bool late;
};
void adamw_step(const FedBack<at::Tensor>& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);
void adamw_step(const FedBack<SplitWeight>& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);

// As above for moments alone: returns nothing but turns `gradient` into (m / c1 + share g) / (sqrt(v / c2) + eps).
void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors);

namespace portable {
void adamw_step(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);
void adamw_step(const SplitWeight& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamFactors& factors, double rate, double decay, double factor = 1);
void adam_direction(const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                    const AdamFactors& factors);
}  // namespace portable

}  // namespace gyre
