#include "gyre/train/step_recorder.h"

#include <cmath>
#include <utility>

namespace gyre {

StepRecorder::StepRecorder(int stages, const Segment& segment, std::function<void(const StepRecord&)> tell)
    : stages_(stages),
      window_(segment.schedule->window),
      first_microbatch_(segment.first_microbatch),
      first_update_(segment.first_update),
      tell_(std::move(tell)) {}

void StepRecorder::on_loss(int64_t microbatch, double loss) {
  const int64_t step = first_update_ + (microbatch - first_microbatch_) / window_ + 1;
  pending_[step].losses[microbatch] = loss;
  tell_complete();
}

void StepRecorder::on_update(int stage, int64_t update, const std::vector<double>& squared_norms) {
  Pending& pending = pending_[update];
  pending.squared_norms.resize(stages_);
  pending.squared_norms[stage] = squared_norms;
  ++pending.updated;
  tell_complete();
}

// A step may be complete before the one before it: if they have no pipeline in common, their losses come from different
// workers, and one worker's reports may be read later than all others'.
void StepRecorder::tell_complete() {
  while (next_is_complete()) tell_(take_next());
}

bool StepRecorder::next_is_complete() const {
  const auto next = pending_.find(first_update_ + steps_told_ + 1);
  return next != pending_.end() && next->second.updated == stages_ && std::ssize(next->second.losses) == window_;
}

StepRecord StepRecorder::take_next() {
  const auto& [step, pending] = *pending_.begin();
  StepRecord record;
  record.step = step;
  for (const auto& [microbatch, loss] : pending.losses) record.loss += loss;
  record.loss /= static_cast<double>(window_);
  double squares = 0;
  for (const auto& stage : pending.squared_norms) {
    for (double squared : stage) squares += squared;
  }
  record.grad_norm = std::sqrt(squares);
  pending_.erase(pending_.begin());
  ++steps_told_;
  return record;
}

}  // namespace gyre
