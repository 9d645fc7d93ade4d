#include "gyre/optim/nesterov_async.h"

#include <cmath>

namespace gyre {
namespace {

double nesterov_momentum(double beta1, int64_t update) {
  return beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(update)));
}

}  // namespace

double NesterovAsync::momentum_product(double beta1, int64_t update) {
  if (update < product_update_) {
    product_update_ = 0;
    product_ = 1;
  }
  while (product_update_ < update) product_ *= nesterov_momentum(beta1, ++product_update_);
  return product_;
}

AdamFactors NesterovAsync::factors(const Config& config, int64_t update) {
  const double now = nesterov_momentum(config.beta1, update), next = nesterov_momentum(config.beta1, update + 1);
  const double product = momentum_product(config.beta1, update);
  AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, update);
  factors.correction1 = (1 - product * next) / next;  // infinite without momentum: m has no part in the step
  factors.gradient_share = (1 - now) / (1 - product);
  return factors;
}

}  // namespace gyre
