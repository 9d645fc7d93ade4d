// The exponential moving average of an owner's weights (EMA; Polyak and Juditsky, 1992, with weights that fall off): a
// second set of weights, which is evaluated and exported in the place of those that are trained.
//
//   after version t: the mean of versions 0 to t in which version i counts d^(t-i), d the decay. So
//   average <- average + r (weights - average),  r = (1 - d) / (1 - d^(t+1)),
//   and the first versions, from which training soon moves away, have no more of it than others.
//
// An update that was left out, because its gradient was not finite, made a version too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// Which of a run's weights: those that it trains, or their averages.
enum class ModelWeights { Trained, Ema };

class WeightAverage {
 public:
  // A parameter's weight, fp32, by its number among the specs.
  using Weights = std::function<at::Tensor(size_t)>;

  WeightAverage(std::vector<ParameterSpec> specs, double decay, at::Device device);
  // Begins anew: from a state that has the averages of these parameters, else from the weights. InputError for a state
  // that has some of them, or one of another shape.
  void restart(const Weights& weights, const NamedTensors& state = {});
  // `weights`: of version `version`, the one after the last that it was given.
  void take_in(const Weights& weights, int64_t version);
  const FlatBuffer& values() const { return values_; }  // fp32
  // As Optimizer::state: by state_name(), live tensors.
  NamedTensors state() const;
  // "<full parameter name>/ema".
  static std::string state_name(const std::string& parameter);

 private:
  std::vector<ParameterSpec> specs_;
  double decay_;
  FlatBuffer values_;
};

// average <- average + rate (weight - average), in one pass. Both fp32 and of the same shape.
void move_average(const at::Tensor& average, const at::Tensor& weight, double rate);
namespace portable {
void move_average(const at::Tensor& average, const at::Tensor& weight, double rate);
}  // namespace portable

}  // namespace gyre
