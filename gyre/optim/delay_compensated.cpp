#include "gyre/optim/delay_compensated.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace gyre {

void DelayCompensated::step(const Config& config, const at::Tensor& weight, const at::Tensor& gradient,
                            const UpdateContext& context) {
  const auto delay = std::min<size_t>(static_cast<size_t>(context.delay), past_.size());
  if (delay > 0) gradient.addcmul_(gradient.square(), weight - past_[delay - 1], config.lambda);
  remember(weight, context);
  moments_.step(config, weight, gradient, context);
}

void DelayCompensated::remember(const at::Tensor& weight, const UpdateContext& context) {
  // One more than the delay, since delays grow while the pipeline fills.
  at::Tensor kept;
  if (past_.size() > static_cast<size_t>(context.delay)) {
    kept = std::move(past_.back());
    past_.pop_back();
    kept.copy_(weight);
  } else {
    kept = weight.clone();
  }
  past_.push_front(std::move(kept));
}

void DelayCompensated::load(const NamedTensors& state) {
  past_.clear();
  moments_.load(state);
}

}  // namespace gyre
