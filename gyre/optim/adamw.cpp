#include "gyre/optim/adamw.h"

namespace gyre {

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

double AdamW::state_bytes(const OptimizerConfig&, const ParameterSpec& spec) {
  return AdamMoments::state_bytes(spec);
}

}  // namespace gyre
