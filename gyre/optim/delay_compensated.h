// Delay-compensated gradients (Zheng et al., DC-ASGD, 2017): AdamW with g + lambda g*g*(W_now - W_then) in the place of
// g, W_then the weights that the gradient was computed with, as many updates ago as the delay says.
#pragma once

#include <deque>

#include "gyre/optim/parameter/adam_moments.h"
#include "gyre/optim/parameter/passing_bytes.h"
#include "gyre/optim/parameter/state.h"
#include "gyre/optim/settings/delay_compensated_settings.h"

namespace gyre {

struct DelayCompensatedConfig : AdamSettings, DelayCompensatedSettings {};

class DelayCompensated {
 public:
  using Settings = DelayCompensatedSettings;
  using Config = DelayCompensatedConfig;
  DelayCompensated(const Config& config, const ParameterSpec& spec, at::Device device)
      : moments_(config, spec, device) {}
  void step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient, const UpdateContext& context);
  void step(const Config& config, const SplitWeight& weight, const at::Tensor& gradient, const UpdateContext& context);
  // A version like the one before counts as one, as delays count it.
  void skip(const at::Tensor& weight, const UpdateContext& context) { remember(weight, context); }
  // The weights of the last updates belong to the pipeline's filling, not to the state: after a drain there is no
  // delay.
  void save(NamedTensors& state) const { moments_.save(state); }
  void load(const NamedTensors& state);
  static double state_bytes(const Config& config, const ParameterSpec& spec) {
    return AdamMoments::state_bytes(config, spec);
  }
  static constexpr bool kOnePassOnCpu = true;
  // The gradient's square and what the weight has moved by; and the weight, if it was in halves.
  static StepBytes step_bytes(const Config&, const ParameterSpec& spec, bool in_halves) {
    const double bytes = state_tensor_bytes(spec), whole = in_halves ? bytes : 0;
    return {.prompt = whole, .late = whole + 2 * bytes};
  }
  static PassingBytes passing_bytes(const Config&, const ParameterSpec& spec) {
    return {.held = state_tensor_bytes(spec), .per_delay = state_tensor_bytes(spec)};  // see remember()
  }

 private:
  template <typename Weight>
  void step_any(const Config& config, const Weight& weight, const at::Tensor& gradient, const UpdateContext& context);
  // In one pass on the CPU: the gradient becomes the compensated one, and the weight is remembered.
  template <typename Weight>
  void compensate(const Config& config, const Weight& weight, const at::Tensor& gradient, const UpdateContext& context);
  void remember(const at::Tensor& weight, const UpdateContext& context);
  void remember(const SplitWeight& weight, const UpdateContext& context);
  // Where a weight is to be kept: in the place of the oldest, which is taken out, or beside all.
  at::Tensor next_kept(const at::Tensor& like, const UpdateContext& context);

  AdamMoments moments_;
  std::deque<at::Tensor> past_;  // past_[i]: the weight i + 1 updates ago
};

}  // namespace gyre
