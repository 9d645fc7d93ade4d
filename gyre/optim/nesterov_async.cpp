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

NesterovAsync::NesterovAsync(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
    : config_(config), specs_(specs) {
  for (const ParameterSpec& spec : specs) {
    exp_avg_.push_back(state_zeros(spec, device));
    exp_avg_sq_.push_back(state_zeros(spec, device));
  }
}

double NesterovAsync::momentum_product(int64_t update) {
  if (update < product_update_) {
    product_update_ = 0;
    product_ = 1;
  }
  while (product_update_ < update) product_ *= nesterov_momentum(config_.beta1, ++product_update_);
  return product_;
}

void NesterovAsync::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  const double now = nesterov_momentum(config_.beta1, context.update);
  const double next = nesterov_momentum(config_.beta1, context.update + 1);
  const double product = momentum_product(context.update);
  const double correction2 = 1 - std::pow(config_.beta2, static_cast<double>(context.update));
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    exp_avg_[i].mul_(config_.beta1).add_(gradient, 1 - config_.beta1);
    exp_avg_sq_[i].mul_(config_.beta2).addcmul_(gradient, gradient, 1 - config_.beta2);
    const at::Tensor scale = exp_avg_sq_[i].div(correction2).sqrt_().add_(config_.epsilon);
    const at::Tensor direction =
        gradient.mul((1 - now) / (1 - product)).add_(exp_avg_[i], next / (1 - product * next)).div_(scale);
    const double decay = specs_[i].decay ? context.learning_rate * config_.weight_decay : 0;
    if (decay > 0) weights[i].mul_(1 - decay);
    weights[i].sub_(direction, context.learning_rate);
  }
}

NamedTensors NesterovAsync::state() const {
  NamedTensors state;
  for (size_t i = 0; i < specs_.size(); ++i) {
    state[specs_[i].name + "/exp_avg"] = exp_avg_[i];
    state[specs_[i].name + "/exp_avg_sq"] = exp_avg_sq_[i];
  }
  return state;
}

void NesterovAsync::load_state(const NamedTensors& state) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    load_tensor(state, specs_[i].name + "/exp_avg", exp_avg_[i]);
    load_tensor(state, specs_[i].name + "/exp_avg_sq", exp_avg_sq_[i]);
  }
}

double NesterovAsync::state_bytes(const OptimizerConfig&, const ParameterSpec& spec) {
  return 2 * state_tensor_bytes(spec);  // two moments
}

}  // namespace gyre
