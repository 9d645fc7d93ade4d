#include "gyre/optim/delay_discount.h"

#include <algorithm>
#include <cmath>

namespace gyre {

UpdateContext DelayDiscount::slowed(UpdateContext context) const {
  const double progress = static_cast<double>(context.update) / static_cast<double>(delay_warmup_);
  const double p = 1 - std::min(progress, 1.0);
  context.learning_rate /= std::pow(static_cast<double>(std::max<int64_t>(1, context.delay)), p);
  return context;
}

}  // namespace gyre
