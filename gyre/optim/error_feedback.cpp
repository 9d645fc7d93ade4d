#include "gyre/optim/error_feedback.h"

#include <ATen/ATen.h>

#include "gyre/optim/parameter/state.h"

namespace gyre {

ErrorFeedback::ErrorFeedback(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
    : adamw_(config, specs, device), specs_(specs) {
  for (const ParameterSpec& spec : specs) last_step_.push_back(state_zeros(spec, device));
}

void ErrorFeedback::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  std::vector<at::Tensor> steps;
  for (const at::Tensor& weight : weights) steps.push_back(weight.clone());
  adamw_.step(weights, gradients, context);
  for (size_t i = 0; i < weights.size(); ++i) {
    steps[i].sub_(weights[i]);
    if (context.delay > 0) weights[i].sub_((steps[i] - last_step_[i]).mul_(last_step_[i].any()));
    last_step_[i].copy_(steps[i]);
  }
}

NamedTensors ErrorFeedback::state() const {
  NamedTensors state = adamw_.state();
  for (size_t i = 0; i < specs_.size(); ++i) state[specs_[i].name + "/last_step"] = last_step_[i];
  return state;
}

void ErrorFeedback::load_state(const NamedTensors& state) {
  adamw_.load_state(state);
  for (size_t i = 0; i < specs_.size(); ++i) load_tensor(state, specs_[i].name + "/last_step", last_step_[i]);
}

double ErrorFeedback::state_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  return AdamW::state_bytes(config, spec) + state_tensor_bytes(spec);
}

}  // namespace gyre
