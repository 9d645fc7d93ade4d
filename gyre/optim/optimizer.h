// The contract of an optimizer: it owns the state of one stage's parameters and turns a gradient into an update.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "gyre/optim/parameter/split_weight.h"
#include "gyre/optim/parameter/update_context.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Whether step() multiplies gradients by the context's factor as it reads them, which saves a pass where they are
  // clipped.
  virtual bool takes_gradient_factor() const { return false; }
  // weights: fp32 masters, changed in place. gradients: fp32, clipped already but for that factor, same order as the
  // specs given at construction; may be used as scratch.
  virtual void step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                    const UpdateContext& context) = 0;

  // The same of masters in halves, whose next version it writes (optim/parameter/split_weight.h). Unless an optimizer
  // has better, all weights are made whole for it.
  virtual void step_split(std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                          const UpdateContext& context) {
    std::vector<at::Tensor> whole;
    for (const SplitWeight& weight : weights) whole.push_back(joined(weight));
    step(whole, gradients, context);
    for (size_t i = 0; i < weights.size(); ++i) split(whole[i], weights[i]);
  }

  // Instead of a step, for an update that is left out: the next version is as this one.
  virtual void skip(std::span<const at::Tensor> /*weights*/, const UpdateContext& /*context*/) {}

  // State by "<full parameter name>/<what>", independent of how the model is cut into stages. The tensors are the live
  // ones: copy before the next step if they must not change.
  virtual NamedTensors state() const = 0;
  // Restores what state() gave; InputError names what is missing or has another shape. Entries of parameters that this
  // optimizer does not own are ignored.
  virtual void load_state(const NamedTensors& state) = 0;
};

}  // namespace gyre
