// Error feedback (after arXiv 2606.30634): W <- W - (u + (u - u_previous)), u what AdamW would subtract, rate and decay
// in it; W <- W - u where the gradient is not late, and where there is no previous step. Made for a delay of one.
#pragma once

#include <vector>

#include "gyre/optim/adamw.h"
#include "gyre/optim/config.h"

namespace gyre {

class ErrorFeedback final : public Optimizer {
 public:
  ErrorFeedback(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec);

 private:
  AdamW adamw_;
  std::vector<ParameterSpec> specs_;
  std::vector<at::Tensor> last_step_;  // zeros: there was none
};

}  // namespace gyre
