// AdamW (Loshchilov and Hutter, 2019): Adam with decoupled weight decay.
#pragma once

#include <vector>

#include "gyre/optim/optimizer.h"
#include "gyre/optim/settings/optimizer_kind.h"

namespace gyre {

// Moments of one parameter, and a step with them.
class AdamMoments {
 public:
  AdamMoments(const ParameterSpec& spec, at::Device device);
  void step(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);

 private:
  std::string name_;
  bool decay_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

class AdamW final : public Optimizer {
 public:
  AdamW(const AdamSettings& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  AdamSettings config_;
  std::vector<AdamMoments> moments_;
};

}  // namespace gyre
