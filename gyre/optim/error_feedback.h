// Error feedback (after arXiv 2606.30634): W <- W - (u + (u - u_previous)), u what AdamW would subtract, rate and decay
// in it; W <- W - u where the gradient is not late, and where there is no previous step. Made for a delay of one.
#pragma once

#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/passing_bytes.h"

namespace gyre {

class ErrorFeedback {
 public:
  using Config = AdamSettings;
  static constexpr bool kTakesGradientFactor = true, kOnePassOnCpu = true;
  ErrorFeedback(const Config& config, const ParameterSpec& spec, at::Device device);
  template <typename Weight>
  void step(const Config& config, const Weight& weight, const at::Tensor& gradient, const UpdateContext& context) {
    moments_.step(config, FedBack<Weight>{weight, last_step_, context.delay > 0}, gradient, context);
  }
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const Config& config, const ParameterSpec& spec);
  static StepBytes step_bytes(const Config& config, const ParameterSpec& spec, bool in_halves);

 private:
  std::string name_;
  AdamMoments moments_;
  at::Tensor last_step_;  // zeros: there was none
};

}  // namespace gyre
