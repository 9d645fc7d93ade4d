#include "gyre/optim/adamw.h"

#include <ATen/ATen.h>

#include "gyre/optim/adam_kernel.h"
#include "gyre/optim/state.h"

namespace gyre {

AdamMoments::AdamMoments(const ParameterSpec& spec, at::Device device)
    : name_(spec.name),
      decay_(spec.decay),
      exp_avg_(at::zeros(spec.shape, at::TensorOptions().dtype(at::kFloat).device(device))),
      exp_avg_sq_(at::zeros_like(exp_avg_)) {}

void AdamMoments::step(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                       const UpdateContext& context) {
  const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, context.update);
  const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
  adamw_step(weight, gradient, exp_avg_, exp_avg_sq_, factors, context.learning_rate, decay);
}

void AdamMoments::save(NamedTensors& state) const {
  state[name_ + "/exp_avg"] = exp_avg_;
  state[name_ + "/exp_avg_sq"] = exp_avg_sq_;
}

void AdamMoments::load(const NamedTensors& state) {
  load_tensor(state, name_ + "/exp_avg", exp_avg_);
  load_tensor(state, name_ + "/exp_avg_sq", exp_avg_sq_);
}

AdamW::AdamW(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device) : config_(config) {
  for (const ParameterSpec& spec : specs) moments_.emplace_back(spec, device);
}

void AdamW::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                 const UpdateContext& context) {
  for (size_t i = 0; i < moments_.size(); ++i) moments_[i].step(config_, weights[i], gradients[i], context);
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (const AdamMoments& moments : moments_) moments.save(state);
  return state;
}

void AdamW::load_state(const NamedTensors& state) {
  for (AdamMoments& moments : moments_) moments.load(state);
}

}  // namespace gyre
