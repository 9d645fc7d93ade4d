// Nesterov's momentum for asynchronous pipelines (arXiv 2505.01099): NAdam with decoupled weight decay.
//   mu_t = b1 (1 - 0.5 * 0.96^(0.004 t)), P_t = mu_1 ... mu_t
//   step = [(1 - mu_t) / (1 - P_t) g + mu_{t+1} / (1 - P_t mu_{t+1}) m] / (sqrt(v / (1 - b2^t)) + eps)
#pragma once

#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/optimizer.h"

namespace gyre {

class NesterovAsync final : public Optimizer {
 public:
  NesterovAsync(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device);
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec);

 private:
  double momentum_product(int64_t update);

  AdamSettings config_;
  std::vector<ParameterSpec> specs_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_;
  int64_t product_update_ = 0;  // the product of momenta up to this update
  double product_ = 1;
};

}  // namespace gyre
