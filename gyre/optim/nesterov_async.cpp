#include "gyre/optim/nesterov_async.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/optim/parameter/state.h"

namespace gyre {
namespace {

double nesterov_momentum(double beta1, int64_t update) {
  return beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(update)));
}

}  // namespace

double NesterovAsync::momentum_product(double beta1, int64_t update) {
  if (update < product_update_) {
    product_update_ = 0;
    product_ = 1;
  }
  while (product_update_ < update) product_ *= nesterov_momentum(beta1, ++product_update_);
  return product_;
}

void NesterovAsync::step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient,
                         const UpdateContext& context) {
  const double now = nesterov_momentum(config.beta1, context.update);
  const double next = nesterov_momentum(config.beta1, context.update + 1);
  const double product = momentum_product(config.beta1, context.update);
  const double correction2 = 1 - std::pow(config.beta2, static_cast<double>(context.update));
  const at::Tensor exp_avg = moments_.exp_avg(), exp_avg_sq = moments_.exp_avg_sq();
  exp_avg.mul_(config.beta1).add_(gradient, 1 - config.beta1);
  exp_avg_sq.mul_(config.beta2).addcmul_(gradient, gradient, 1 - config.beta2);
  const at::Tensor scale = exp_avg_sq.div(correction2).sqrt_().add_(config.epsilon);
  const at::Tensor direction =
      gradient.mul((1 - now) / (1 - product)).add_(exp_avg, next / (1 - product * next)).div_(scale);
  const double decay = moments_.decays() ? context.learning_rate * config.weight_decay : 0;
  if (decay > 0) weight.mul_(1 - decay);
  weight.sub_(direction, context.learning_rate);
  moments_.keep(exp_avg, exp_avg_sq, gradient, context.update);
}

// The scale and the direction; the weight, if it was in halves, and the moments, if they are in bf16.
StepBytes NesterovAsync::step_bytes(const Config& config, const ParameterSpec& spec, bool in_halves) {
  const double bytes = (2 + (in_halves ? 1 : 0) + (config.bf16_moments ? 2 : 0)) * state_tensor_bytes(spec);
  return {bytes, bytes};
}

}  // namespace gyre
