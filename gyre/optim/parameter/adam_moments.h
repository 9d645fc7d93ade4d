// Adam's moments of one parameter, and AdamW's step with them (Loshchilov and Hutter, 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/fused_adamw.h"
#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

class AdamMoments {
 public:
  using Config = AdamSettings;
  static constexpr bool kTakesGradientFactor = true;
  AdamMoments(const AdamSettings& config, const ParameterSpec& spec, at::Device device);
  // Weight: at::Tensor or SplitWeight, or FedBack of them.
  template <typename Weight>
  void step(const AdamSettings& config, const Weight& weight, const at::Tensor& gradient,
            const UpdateContext& context) {
    step(adam_factors(config.beta1, config.beta2, config.epsilon, context.update), config, weight, gradient, context);
  }
  // With other factors than Adam's.
  template <typename Weight>
  void step(const AdamFactors& factors, const AdamSettings& config, const Weight& weight, const at::Tensor& gradient,
            const UpdateContext& context) {
    const double decay = decay_ ? context.learning_rate * config.weight_decay : 0;
    adamw_step(weight, gradient, exp_avg_, exp_avg_sq_, factors, context.learning_rate, decay, context.gradient_factor);
  }
  // Leaves the step to `together` if that takes it; returns whether it did.
  bool step_together(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                     FusedAdamw& together) const;
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const AdamSettings& config, const ParameterSpec& spec);

 private:
  std::string name_;
  bool decay_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace gyre
