// An optimizer that treats matrices in a way of its own, and everything else as AdamW does.
#pragma once

#include <vector>

#include "gyre/optim/config.h"
#include "gyre/optim/optimizer.h"
#include "gyre/optim/parameter/matrix_parameter.h"

namespace gyre {

// Matrices: what it keeps for the matrices of one parameter (optim/parameter/matrix_parameter.h).
template <typename Matrices>
class MatrixOptimizer final : public Optimizer {
  using Parameter = MatrixParameter<Matrices>;
  using Config = typename Parameter::Config;

 public:
  MatrixOptimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::Device device)
      : config_(config_of(config)) {
    for (const ParameterSpec& spec : specs) parameters_.emplace_back(config_, spec, device);
  }
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
            const UpdateContext& context) override {
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].step(config_, weights[i], gradients[i], context);
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

 private:
  static Config config_of(const OptimizerConfig& config) {
    return {config, config.own.get<typename Parameter::Settings>()};
  }

  Config config_;
  std::vector<Parameter> parameters_;
};

}  // namespace gyre
