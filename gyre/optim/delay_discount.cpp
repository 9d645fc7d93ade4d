#include "gyre/optim/delay_discount.h"

#include <algorithm>
#include <cmath>

namespace gyre {

void DelayDiscount::step(std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                         const UpdateContext& context) {
  UpdateContext slowed = context;
  const double progress = static_cast<double>(context.update) / static_cast<double>(delay_warmup_);
  const double p = 1 - std::min(progress, 1.0);
  slowed.learning_rate /= std::pow(static_cast<double>(std::max<int64_t>(1, context.delay)), p);
  optimizer_->step(weights, gradients, slowed);
}

}  // namespace gyre
