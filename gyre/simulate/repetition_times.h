// Watches a timeline for its steady state: how long a repetition of the programs takes in the end.
//
// Every time in a timeline is the latest of some others, each plus a constant. The end of an action follows from the
// ends of the actions before it; the time when a link has sent everything, from the last message and the one before.
// These belong to the same repetition or to one of a few before it. Suppose that over so many repetitions each time has
// shifted evenly: from each to the next by the same amount, which may be larger for some times than for others.
// Consider a time with the largest shift. What it follows from must have the largest shift too: with a smaller one,
// it would have come too late for it one repetition before. So these times go on with their shift for ever, and none
// can have a larger one: the makespan grows by the largest shift with every further repetition.
//
// A tied weight is an exception: when its sum is sent depends on what else is ready first. But what happens does not
// depend on when it begins, so it is enough that all times have the same shift.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// By how much times are later than they were one repetition before.
struct Shifts {
  bool even = true;  // each by as much as the time before
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void add(double shift, double shift_before);
  void add(const Shifts& others);
};

// A time that is seen once in every repetition.
class ShiftingTime {
 public:
  bool has_changed(double now) const { return now != last_; }
  void see(double now, Shifts& shifts) {
    const double shift = now - last_;
    shifts.add(shift, shift_);
    last_ = now;
    shift_ = shift;
  }

 private:
  double last_ = 0, shift_ = std::numeric_limits<double>::quiet_NaN();
};

class RepetitionTimes {
 public:
  // The schedule must outlive it.
  explicit RepetitionTimes(const Schedule& schedule);

  // Takes the actions of each worker in program order. If one begins_repetition(), end_repetition() comes before it,
  // with what has become of the worker's links since the last time.
  void end_action(int worker, const Action& action, double end);
  bool begins_repetition(int worker) const;
  void end_repetition(int worker, const Shifts& links);

  // How long each repetition takes in the end; nullopt if the timeline was too short to show it.
  std::optional<double> steady() const { return steady_; }
  // Where the timeline can end, in microbatches, since it has shown the steady state; until then kUnlimited.
  int64_t limit() const { return limit_; }

 private:
  struct Watched {
    size_t prologue_left = 0;  // actions
    size_t position = 0;       // in the period
    int64_t repetition = 0;
    bool drains = false;             // an action of the period was left out
    std::vector<ShiftingTime> ends;  // [position]
    Shifts shifts;                   // in this repetition
  };
  struct Repetition {
    size_t workers = 0;  // that have done it
    Shifts shifts;
  };

  // What all workers have done; called for each repetition, in order.
  void end_repetition(const Shifts& shifts);

  const Schedule& schedule_;
  const int64_t reach_;
  size_t repeating_workers_ = 0;  // with periods that are not empty
  std::vector<Watched> workers_;
  std::deque<Repetition> open_;  // those that not all workers have done
  int64_t first_open_ = 0;
  int64_t even_ = 0;  // how many of the last repetitions had even shifts
  int64_t furthest_forward_ = 0;
  int64_t limit_ = kUnlimited;
  std::optional<double> steady_;
};

}  // namespace gyre
