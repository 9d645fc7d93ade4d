// Nesterov's momentum for asynchronous pipelines (arXiv 2505.01099): NAdam with decoupled weight decay.
//   mu_t = b1 (1 - 0.5 * 0.96^(0.004 t)), P_t = mu_1 ... mu_t
//   step = [(1 - mu_t) / (1 - P_t) g + mu_{t+1} / (1 - P_t mu_{t+1}) m] / (sqrt(v / (1 - b2^t)) + eps)
#pragma once

#include "gyre/optim/parameter/adam_moments.h"

namespace gyre {

class NesterovAsync {
 public:
  using Config = AdamSettings;
  static constexpr bool kTakesGradientFactor = true;
  NesterovAsync(const Config& config, const ParameterSpec& spec, at::Device device) : moments_(config, spec, device) {}
  template <typename Weight>
  void step(const Config& config, const Weight& weight, const at::Tensor& gradient, const UpdateContext& context) {
    moments_.step(factors(config, context.update), config, weight, gradient, context);
  }
  void save(NamedTensors& state) const { moments_.save(state); }
  void load(const NamedTensors& state) { moments_.load(state); }
  static double state_bytes(const Config& config, const ParameterSpec& spec) {
    return AdamMoments::state_bytes(config, spec);
  }

 private:
  AdamFactors factors(const Config& config, int64_t update);
  double momentum_product(double beta1, int64_t update);

  AdamMoments moments_;
  int64_t product_update_ = 0;  // the product of momenta up to this update
  double product_ = 1;
};

}  // namespace gyre
