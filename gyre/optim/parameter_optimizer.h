// An optimizer that treats each parameter by itself, as all of ours do but basis rotation.
#pragma once

#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/optimizer.h"
#include "gyre/optim/parameter/fused_adamw.h"
#include "gyre/optim/parameter/split_weight.h"

namespace gyre {

// Parameter: what is kept for one parameter. It has
//   Config: AdamSettings or, if the kind has a table of its own, which Parameter calls Settings, a struct derived from
//     both and nothing more: struct Config : AdamSettings, Settings {}
//   Parameter(const Config&, const ParameterSpec&, at::Device)
//   step(const Config&, weight, gradient, context), save(state) and load(state), as Optimizer has them
//   static double state_bytes(const Config&, const ParameterSpec&)
//   static double update_cost(const Config&, const ParameterSpec&), if it makes products (optim/config.h)
//   static PassingBytes passing_bytes(const Config&, const ParameterSpec&), if there are any
//   static StepBytes step_bytes(const Config&, const ParameterSpec&, bool in_halves), if there are any
//   static constexpr bool kOnePassOnCpu, if steps on the CPU hold nothing, whatever step_bytes says
//   static constexpr bool kTakesGradientFactor, if it does
//   step(const Config&, weight, gradient, context) for a weight in halves, if that saves a pass
//   step_together(const Config&, weight, gradient, FusedAdamw&), if some of its steps are AdamW's and nothing else
//   skip(weight, context), if it counts versions
template <typename Parameter>
class ParameterOptimizer final : public Optimizer {
  using Config = typename Parameter::Config;

 public:
  ParameterOptimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
      : config_(config_of(config)) {
    for (const ParameterSpec& spec : specs) parameters_.emplace_back(config_, spec, device);
  }
  bool takes_gradient_factor() const override {
    if constexpr (requires { Parameter::kTakesGradientFactor; }) {
      return Parameter::kTakesGradientFactor;
    } else {
      return false;
    }
  }
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override {
    FusedAdamw together;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if constexpr (requires { parameters_[i].step_together(config_, weights[i], gradients[i], together); }) {
        if (parameters_[i].step_together(config_, weights[i], gradients[i], together)) continue;
      }
      parameters_[i].step(config_, weights[i], gradients[i], context);
    }
    together.make(config_, context);
  }
  void step_split(std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                  const UpdateContext& context) override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      step_on(weights[i], parameters_[i], config_, gradients[i], context);
    }
  }
  void skip(std::span<const at::Tensor> weights, const UpdateContext& context) override {
    if constexpr (requires(Parameter & parameter) { parameter.skip(weights[0], context); }) {
      for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].skip(weights[i], context);
    }
  }
  NamedTensors state() const override {
    NamedTensors state;
    for (const Parameter& parameter : parameters_) parameter.save(state);
    return state;
  }
  void load_state(const NamedTensors& state) override {
    for (Parameter& parameter : parameters_) parameter.load(state);
  }
  static double state_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
    return Parameter::state_bytes(config_of(config), spec);
  }
  static double update_cost(const OptimizerConfig& config, const ParameterSpec& spec) {
    if constexpr (requires { Parameter::update_cost(config_of(config), spec); }) {
      return Parameter::update_cost(config_of(config), spec);
    } else {
      return 0;
    }
  }
  static PassingBytes passing_bytes(const OptimizerConfig& config, const ParameterSpec& spec) {
    if constexpr (requires { Parameter::passing_bytes(config_of(config), spec); }) {
      return Parameter::passing_bytes(config_of(config), spec);
    } else {
      return {};
    }
  }
  static StepBytes step_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                              const StepSetting& setting) {
    StepBytes most;
    if constexpr (requires { Parameter::kOnePassOnCpu; }) {
      if (setting.device.is_cpu()) return most;
    }
    if constexpr (requires { Parameter::step_bytes(config_of(config), specs[0], setting.in_halves); }) {
      for (const ParameterSpec& spec : specs) {
        most.take_larger(Parameter::step_bytes(config_of(config), spec, setting.in_halves));
      }
    }
    return most;
  }

 private:
  static Config config_of(const OptimizerConfig& config) {
    if constexpr (requires { typename Parameter::Settings; }) {
      return {config, config.own.get<typename Parameter::Settings>()};
    } else {
      return config;
    }
  }

  Config config_;
  std::vector<Parameter> parameters_;
};

}  // namespace gyre
