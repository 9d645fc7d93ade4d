// AdamW (Loshchilov and Hutter, 2019): Adam with decoupled weight decay.
#pragma once

#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/optimizer.h"
#include "gyre/optim/parameter/adam_moments.h"

namespace gyre {

class AdamW final : public Optimizer {
 public:
  AdamW(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec);

 private:
  AdamSettings config_;
  std::vector<AdamMoments> moments_;
};

}  // namespace gyre
