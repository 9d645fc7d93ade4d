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
  tell_if_complete(step);
}

void StepRecorder::on_update(int stage, int64_t update, const std::vector<double>& squared_norms) {
  Pending& pending = pending_[update];
  pending.squared_norms.resize(stages_);
  pending.squared_norms[stage] = squared_norms;
  ++pending.updated;
  tell_if_complete(update);
}

// Every stage's updates come in order, so the steps complete in order too.
void StepRecorder::tell_if_complete(int64_t step) {
  const Pending& pending = pending_[step];
  if (pending.updated < stages_ || static_cast<int64_t>(pending.losses.size()) < window_) return;
  StepRecord record;
  record.step = step;
  for (const auto& [microbatch, loss] : pending.losses) record.loss += loss;
  record.loss /= static_cast<double>(window_);
  double squares = 0;
  for (const auto& stage : pending.squared_norms) {
    for (double squared : stage) squares += squared;
  }
  record.grad_norm = std::sqrt(squares);
  pending_.erase(step);
  ++steps_told_;
  tell_(record);
}

}  // namespace gyre
