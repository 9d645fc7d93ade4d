#include "gyre/runtime/published_status.h"

namespace gyre {

void PublishedStatus::set_action(const std::optional<Action>& action) {
  const std::lock_guard lock(mutex_);
  action_ = action;
  need_.reset();
}

void PublishedStatus::set_need(const Need& need) {
  const std::lock_guard lock(mutex_);
  need_ = need;
}

void PublishedStatus::add_delay(int stage, int64_t delay) {
  const std::lock_guard lock(mutex_);
  WorkerStatus::Delays& seen = delays_[stage];
  seen.sum += static_cast<double>(delay);
  ++seen.gradients;
}

WorkerStatus PublishedStatus::read() const {
  WorkerStatus status;
  const std::lock_guard lock(mutex_);
  status.delays = delays_;
  if (action_) status.action = to_string(*action_, schedule_.pipelines);
  if (action_ && need_) status.needs = describe(schedule_, *action_, *need_);
  return status;
}

}  // namespace gyre
