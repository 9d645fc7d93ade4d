#include "gyre/schedule/schedule.h"

#include <algorithm>

#include "gyre/schedule/delay.h"

namespace gyre {
namespace {
constexpr std::pair<WeightPolicy, std::string_view> kWeightPolicies[] = {{WeightPolicy::Stash, "stash"},
                                                                         {WeightPolicy::Latest, "latest"},
                                                                         {WeightPolicy::Predict, "predict"},
                                                                         {WeightPolicy::Corrected, "corrected"}};
}  // namespace

std::string_view to_string(WeightPolicy policy) {
  for (const auto& [known, name] : kWeightPolicies) {
    if (known == policy) return name;
  }
  return "";
}

std::optional<WeightPolicy> parse_weight_policy(std::string_view text) {
  for (const auto& [policy, name] : kWeightPolicies) {
    if (name == text) return policy;
  }
  return std::nullopt;
}
namespace {

// An action belongs to a restriction when its last microbatch does; a window's actions need the whole window.
int64_t last_microbatch(const Action& action, int64_t window) {
  return action.is_per_window() ? (action.microbatch + 1) * window - 1 : action.microbatch;
}

}  // namespace

int64_t Schedule::microbatches_in_window(int pipeline, int64_t number) const {
  if (window % pipelines == 0) return window / pipelines;  // most schedules, and asked for every gradient
  const auto below = [&](int64_t m) { return (m - pipeline + pipelines - 1) / pipelines; };  // of the pipeline
  return below((number + 1) * window) - below(number * window);
}

bool Schedule::has_flush() const {
  if (forward_only) return false;
  // A forward finds in every repetition what it finds in the first, relative to its own number.
  const int64_t microbatches = representative_microbatches(*this);
  const ReplicaNumbers replicas(*this);
  for (int worker = 0; worker < workers; ++worker) {
    VersionTracker tracker(*this, replicas, worker);
    for (ProgramCursor cursor(*this, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action& action = *cursor.peek();
      const int64_t version = tracker.track(action);
      if (action.kind == ActionKind::Forward && delay_of(*this, action.microbatch, version) > 0) return false;
    }
  }
  return true;
}

int64_t representative_microbatches(const Schedule& schedule) {
  int64_t prologue_end = 0;
  for (const Program& program : schedule.programs) {
    for (const Action& action : program.prologue) {
      prologue_end = std::max(prologue_end, last_microbatch(action, schedule.window) + 1);
    }
  }
  const int64_t repetitions = (prologue_end + schedule.shift - 1) / schedule.shift + 4;
  return repetitions * schedule.shift;
}

int64_t count_actions(const Schedule& schedule, int64_t microbatches) {
  int64_t once = 0, repeated = 0;
  for (const Program& program : schedule.programs) {
    once += std::ssize(program.prologue);
    repeated += std::ssize(program.period);
  }
  const int64_t repetitions = microbatches / schedule.shift + (microbatches % schedule.shift == 0 ? 0 : 1);
  if (repetitions > 0 && repeated > (kUnlimited - once) / repetitions) return kUnlimited;
  return once + repeated * repetitions;
}

ProgramCursor::ProgramCursor(const Schedule& schedule, int worker, int64_t limit)
    : schedule_(schedule), program_(schedule.programs[worker]), limit_(limit) {
  period_first_ = kUnlimited;
  for (const Action& action : program_.period) {
    period_first_ = std::min(period_first_, last_microbatch(action, schedule_.window));
    period_last_ = std::max(period_last_, last_microbatch(action, schedule_.window));
  }
  settle();
}

void ProgramCursor::restrict_to(int64_t limit) {
  limit_ = std::min(limit_, limit);
  whole_repetition_ = false;
  if (current_ && last_microbatch(*current_, schedule_.window) >= limit_) settle();
}

// Moves to the first action at or after the position that lies below the limit.
void ProgramCursor::settle() {
  current_.reset();
  for (; repetition_ < 0; ++position_) {
    if (position_ == program_.prologue.size()) {
      repetition_ = 0;
      position_ = 0;
      break;
    }
    const Action& action = program_.prologue[position_];
    if (last_microbatch(action, schedule_.window) < limit_) {
      current_ = action;
      return;
    }
  }
  if (program_.period.empty()) return;
  for (;; ++position_) {
    if (position_ == program_.period.size()) {
      ++repetition_;
      position_ = 0;
    }
    microbatch_offset_ = repetition_ * schedule_.shift;
    window_offset_ = repetition_ * (schedule_.shift / schedule_.window);
    // A repetition whose earliest action is past the limit has nothing to give, nor has any later one.
    if (position_ == 0 && period_first_ + microbatch_offset_ >= limit_) return;
    whole_repetition_ = period_last_ + microbatch_offset_ < limit_;
    take_from_period();
    if (last_microbatch(*current_, schedule_.window) < limit_) return;
    current_.reset();
  }
}

int64_t max_in_flight(const Schedule& schedule, int pipeline, int stage) {
  ProgramCursor cursor(schedule, schedule.worker_of(pipeline, stage), representative_microbatches(schedule));
  int64_t held = 0;
  int64_t most = 0;
  for (; cursor.peek(); cursor.advance()) {
    const Action action = *cursor.peek();
    if (action.pipeline != pipeline || action.stage != stage) continue;
    if (action.kind == ActionKind::Forward) most = std::max(most, ++held);
    if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights) --held;
  }
  return most;
}

}  // namespace gyre
