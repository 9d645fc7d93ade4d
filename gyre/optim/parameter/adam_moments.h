// Adam's moments of one parameter, and AdamW's step with them (Loshchilov and Hutter, 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gyre/optim/parameter/fused_adamw.h"
#include "gyre/optim/parameter/split_weight.h"
#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

class AdamMoments {
 public:
  using Config = AdamSettings;
  static constexpr bool kTakesGradientFactor = true;
  AdamMoments(const AdamSettings& config, const ParameterSpec& spec, at::Device device);
  void step(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void step(const AdamSettings& config, const SplitWeight& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  // Leaves the step to `together` if that takes it; returns whether it did.
  bool step_together(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
                     FusedAdamw& together) const;
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const AdamSettings& config, const ParameterSpec& spec);

  // For other steps with the same moments: in fp32, to be changed in place, then kept as the ones after this update,
  // whose gradient is given.
  at::Tensor exp_avg() const { return exp_avg_.to(at::kFloat); }
  at::Tensor exp_avg_sq() const { return exp_avg_sq_.to(at::kFloat); }
  void keep(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, const at::Tensor& gradient, int64_t update);
  bool decays() const { return decay_; }

 private:
  template <typename Weight>
  void step_any(const AdamSettings& config, const Weight& weight, const at::Tensor& gradient,
                const UpdateContext& context);

  std::string name_;
  bool decay_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace gyre
