#include "gyre/optim/parameter/adam_moments.h"

#include "gyre/optim/parameter/state.h"

namespace gyre {

AdamMoments::AdamMoments(const AdamSettings& config, const ParameterSpec& spec, at::Device device)
    : name_(spec.name),
      decay_(spec.decay),
      exp_avg_(state_zeros(spec, device, moments_type(config))),
      exp_avg_sq_(state_zeros(spec, device, moments_type(config))) {}

bool AdamMoments::step_together(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                                FusedAdamw& together) const {
  return together.take(weight, gradient, exp_avg_, exp_avg_sq_, decay_ ? config.weight_decay : 0);
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
