#include "gyre/simulate/repetition_times.h"

#include <algorithm>
#include <cmath>

namespace gyre {
namespace {

constexpr double kRounding = 1e-9;

// Over how many repetitions times must shift evenly: one more than those that a time can directly follow from. An
// action follows from others of the same microbatch or window, and from the one before it.
int64_t find_reach(const Schedule& schedule) {
  int64_t first = kUnlimited, last = 0;
  for (const Program& program : schedule.programs) {
    for (const Action& action : program.period) {
      const int64_t microbatch = action.is_per_window() ? action.microbatch * schedule.window : action.microbatch;
      first = std::min(first, microbatch);
      last = std::max(last, action.is_per_window() ? microbatch + schedule.window - 1 : microbatch);
    }
  }
  return std::max<int64_t>(0, last - first) / schedule.shift + 2;
}

}  // namespace

void Shifts::add(double shift, double shift_before) {
  even = even && std::abs(shift - shift_before) <= kRounding * std::abs(shift);  // false if one is not a number
  least = std::min(least, shift);
  most = std::max(most, shift);
}

void Shifts::add(const Shifts& others) {
  even = even && others.even;
  least = std::min(least, others.least);
  most = std::max(most, others.most);
}

RepetitionTimes::RepetitionTimes(const Schedule& schedule)
    : schedule_(schedule), reach_(find_reach(schedule)), workers_(schedule.programs.size()) {
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    const Program& program = schedule.programs[worker];
    workers_[worker].prologue_left = program.prologue.size();
    workers_[worker].ends.resize(program.period.size());
    if (!program.period.empty()) ++repeating_workers_;
  }
}

void RepetitionTimes::end_action(int worker, const Action& action, double end) {
  if (action.kind == ActionKind::Forward) furthest_forward_ = std::max(furthest_forward_, action.microbatch);
  Watched& watched = workers_[static_cast<size_t>(worker)];
  if (watched.drains) return;
  if (watched.prologue_left > 0) {
    --watched.prologue_left;
    return;
  }
  const std::vector<Action>& period = schedule_.programs[static_cast<size_t>(worker)].period;
  Action expected = period[watched.position];
  const int64_t microbatches = watched.repetition * schedule_.shift;
  expected.microbatch += expected.is_per_window() ? microbatches / schedule_.window : microbatches;
  watched.drains = action != expected;
  if (watched.drains) return;
  watched.ends[watched.position].see(end, watched.shifts);
  if (++watched.position < period.size()) return;
  watched.position = 0;
  ++watched.repetition;
}

bool RepetitionTimes::begins_repetition(int worker) const {
  const Watched& watched = workers_[static_cast<size_t>(worker)];
  return watched.position == 0 && watched.repetition > 0 && !watched.drains;
}

void RepetitionTimes::end_repetition(int worker, const Shifts& links) {
  Watched& watched = workers_[static_cast<size_t>(worker)];
  const auto number = static_cast<size_t>(watched.repetition - 1 - first_open_);
  if (number >= open_.size()) open_.resize(number + 1);
  Repetition& repetition = open_[number];
  repetition.shifts.add(watched.shifts);
  repetition.shifts.add(links);
  watched.shifts = {};
  if (++repetition.workers < repeating_workers_) return;
  end_repetition(repetition.shifts);
  open_.pop_front();
  ++first_open_;
}

void RepetitionTimes::end_repetition(const Shifts& shifts) {
  const bool is_one = shifts.most - shifts.least <= kRounding * std::abs(shifts.most);
  even_ = shifts.even && (is_one || !schedule_.tied) ? even_ + 1 : 0;
  if (steady_ || even_ < reach_) return;
  steady_ = shifts.most;
  // Beyond all forwards that have begun, and those that are next in a program.
  limit_ = (furthest_forward_ / schedule_.window + 1) * schedule_.window + schedule_.shift;
}

}  // namespace gyre
