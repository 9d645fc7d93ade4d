// Delay-compensated gradients (Zheng et al., DC-ASGD, 2017): AdamW with g + lambda g*g*(W_now - W_then) in the place of
// g, W_then the weights that the gradient was computed with, as many updates ago as the delay says.
#pragma once

#include <deque>
#include <vector>

#include "gyre/optim/adamw.h"
#include "gyre/optim/config.h"

namespace gyre {

class DelayCompensated final : public Optimizer {
 public:
  DelayCompensated(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  // The weights of the last updates belong to the pipeline's filling, not to the state: after a drain there is no
  // delay.
  NamedTensors state() const override { return adamw_.state(); }
  void load_state(const NamedTensors& state) override;
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec);

 private:
  double lambda_;
  AdamW adamw_;
  std::deque<std::vector<at::Tensor>> past_;  // past_[i]: the weights i + 1 updates ago
};

}  // namespace gyre
