#include "gyre/optim/parameter/adam_moments.h"

#include <ATen/ATen.h>

#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/state.h"

namespace gyre {

AdamMoments::AdamMoments(const AdamSettings& config, const ParameterSpec& spec, at::Device device)
    : name_(spec.name),
      decay_(spec.decay),
      exp_avg_(state_zeros(spec, device, moments_type(config))),
      exp_avg_sq_(state_zeros(spec, device, moments_type(config))) {}

void AdamMoments::step(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                       const UpdateContext& context) {
  step_any(config, weight, gradient, context);
}

void AdamMoments::step(const AdamSettings& config, const SplitWeight& weight, const at::Tensor& gradient,
                       const UpdateContext& context) {
  step_any(config, weight, gradient, context);
}

template <typename Weight>
void AdamMoments::step_any(const AdamSettings& config, const Weight& weight, const at::Tensor& gradient,
                           const UpdateContext& context) {
  const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, context.update);
  const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
  adamw_step(weight, gradient, exp_avg_, exp_avg_sq_, factors, context.learning_rate, decay, context.gradient_factor);
}

bool AdamMoments::step_together(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                                FusedAdamw& together) const {
  return together.take(weight, gradient, exp_avg_, exp_avg_sq_, decay_ ? config.weight_decay : 0);
}

void AdamMoments::keep(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, const at::Tensor& gradient,
                       int64_t update) {
  round_moments(exp_avg, exp_avg_sq, gradient, update, exp_avg_, exp_avg_sq_);
}

void AdamMoments::save(NamedTensors& state) const {
  state[name_ + "/exp_avg"] = exp_avg_;
  state[name_ + "/exp_avg_sq"] = exp_avg_sq_;
}

void AdamMoments::load(const NamedTensors& state) {
  load_tensor(state, name_ + "/exp_avg", exp_avg_);
  load_tensor(state, name_ + "/exp_avg_sq", exp_avg_sq_);
}

double AdamMoments::state_bytes(const AdamSettings& config, const ParameterSpec& spec) {
  return 2 * state_tensor_bytes(spec, moments_type(config));
}

}  // namespace gyre
