// An update that changes nothing where the gradient is not finite.
#pragma once

#include "gyre/optim/optimizer.h"

namespace gyre {

// optimizer.step, unless the gradients' `norm` (0-dim, on their device) is not finite: then weights and state stay what
// they are, and no moment or basis changes. Nobody waits for the number. On the CPU it is at hand, and decides. Other
// devices make the step from zeros and undo it, at the price of a copy of weights and state; on those devices, if a
// first refresh of whole bases coincides with such an update, their matrix does nothing but decay until the next.
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
