// An update that changes nothing where the gradient is not finite.
#pragma once

#include "gyre/optim/optimizer.h"

namespace gyre {

// optimizer.step, unless the gradients' `norm` (0-dim, on their device) is not finite: then weights and state, moments
// and bases among it, stay what they are. Nobody waits for the norm.
//   On the CPU it is at hand, and decides whether there is a step.
//   On other devices the step is made with gradients of zero and then undone, at the price of a copy of weights and
//   state. One thing is not undone: a matrix whose first refresh falls on such an update counts its bases as made, and
//   they are zero. If they are whole, all that its weights do until the next refresh is to decay.
void step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context);
// The same of masters in halves. Returns whether their next versions are written; if not, they are as they were.
bool step_if_finite(Optimizer& optimizer, std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context);

namespace portable {
void step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context);
}  // namespace portable

}  // namespace gyre
