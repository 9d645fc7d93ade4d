#include "gyre/optim/error_feedback.h"

#include "gyre/optim/parameter/state.h"

namespace gyre {

ErrorFeedback::ErrorFeedback(const Config& config, const ParameterSpec& spec, at::Device device)
    : name_(spec.name), moments_(config, spec, device), last_step_(state_zeros(spec, device)) {}

void ErrorFeedback::save(NamedTensors& state) const {
  moments_.save(state);
  state[name_ + "/last_step"] = last_step_;
}

void ErrorFeedback::load(const NamedTensors& state) {
  moments_.load(state);
  load_tensor(state, name_ + "/last_step", last_step_);
}

// The weight before, the step and, if the gradient is late, the difference of steps and which of them are not 0; and
// the weight, if it was in halves.
StepBytes ErrorFeedback::step_bytes(const Config&, const ParameterSpec& spec, bool in_halves) {
  const double bytes = state_tensor_bytes(spec), prompt = (in_halves ? 3 : 2) * bytes;
  return {prompt, prompt + bytes + bytes / sizeof(float)};
}

double ErrorFeedback::state_bytes(const Config& config, const ParameterSpec& spec) {
  return AdamMoments::state_bytes(config, spec) + state_tensor_bytes(spec);
}

}  // namespace gyre
