// A step that leaves a rounded copy of the new weights as well.
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/optim/parameter/update_context.h"

namespace gyre {

// parameter.step, and `rounded`, of the weight's shape, becomes the new weight: by parameter.step_and_round, which
// takes one pass, where there is one.
template <typename Parameter, typename Config>
void step_and_round(Parameter& parameter, const Config& config, const at::Tensor& weight, const at::Tensor& gradient,
                    const at::Tensor& rounded, const UpdateContext& context) {
  if constexpr (requires { parameter.step_and_round(config, weight, gradient, rounded, context); }) {
    parameter.step_and_round(config, weight, gradient, rounded, context);
  } else {
    parameter.step(config, weight, gradient, context);
    rounded.copy_(weight);  // while it is near
  }
}

}  // namespace gyre
