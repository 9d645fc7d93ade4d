#include "gyre/optim/delay_compensated.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "gyre/optim/settings/delay_compensated_settings.h"

namespace gyre {

DelayCompensated::DelayCompensated(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                   at::Device device)
    : lambda_(config.own.get<DelayCompensatedSettings>().lambda), adamw_(config, specs, device) {}

void DelayCompensated::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                            const UpdateContext& context) {
  const auto delay = std::min<size_t>(static_cast<size_t>(context.delay), past_.size());
  if (delay > 0) {
    const auto& then = past_[delay - 1];
    for (size_t i = 0; i < weights.size(); ++i) {
      gradients[i].addcmul_(gradients[i].square(), weights[i] - then[i], lambda_);
    }
  }
  // One more than the delay, since delays grow while the pipeline fills.
  std::vector<at::Tensor> kept;
  if (past_.size() > static_cast<size_t>(context.delay)) {
    kept = std::move(past_.back());
    past_.pop_back();
    for (size_t i = 0; i < weights.size(); ++i) kept[i].copy_(weights[i]);
  } else {
    for (const at::Tensor& weight : weights) kept.push_back(weight.clone());
  }
  past_.push_front(std::move(kept));
  adamw_.step(weights, gradients, context);
}

void DelayCompensated::load_state(const NamedTensors& state) {
  past_.clear();
  adamw_.load_state(state);
}

double DelayCompensated::state_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
  return AdamW::state_bytes(config, spec);
}

}  // namespace gyre
