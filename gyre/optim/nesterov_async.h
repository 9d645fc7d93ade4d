// Nesterov's momentum for asynchronous pipelines (arXiv 2505.01099): NAdam with decoupled weight decay.
//   mu_t = b1 (1 - 0.5 * 0.96^(0.004 t)), P_t = mu_1 ... mu_t
//   step = [(1 - mu_t) / (1 - P_t) g + mu_{t+1} / (1 - P_t mu_{t+1}) m] / (sqrt(v / (1 - b2^t)) + eps)
#pragma once

#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/passing_bytes.h"

namespace gyre {

class NesterovAsync {
 public:
  using Config = AdamSettings;
  NesterovAsync(const Config& config, const ParameterSpec& spec, at::Device device) : moments_(config, spec, device) {}
  void step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient, const UpdateContext& context);
  void save(NamedTensors& state) const { moments_.save(state); }
  void load(const NamedTensors& state) { moments_.load(state); }
  static double state_bytes(const Config& config, const ParameterSpec& spec) {
    return AdamMoments::state_bytes(config, spec);
  }
  static StepBytes step_bytes(const Config& config, const ParameterSpec& spec, bool in_halves);

 private:
  double momentum_product(double beta1, int64_t update);

  AdamMoments moments_;
  int64_t product_update_ = 0;  // the product of momenta up to this update
  double product_ = 1;
};

}  // namespace gyre
