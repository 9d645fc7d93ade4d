// How fast a session trains. Updates of asynchronous pipelines are heard of in bursts, so the time between two of them
// says nothing: the rate is taken over the last updates, of as many as a second of training needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace gyre {

class TrainingRate {
 public:
  using Clock = std::chrono::steady_clock;

  // Training goes on; it stops, for an evaluation or a save. The time in between does not count.
  void go_on(Clock::time_point now);
  void stop(Clock::time_point now);
  // An update of so many tokens was made. Tokens per second of the last updates that took a second together, or more;
  // of all of the session while it is shorter; of this one alone where it took longer.
  double update(int64_t tokens, Clock::time_point now);

 private:
  double seconds_at(Clock::time_point now) const;

  struct Mark {
    double seconds = 0;  // of training in this session
    int64_t tokens = 0;
  };
  // After each update; the first is the newest that is a second old, or else the session's beginning.
  std::deque<Mark> marks_ = {Mark{}};
  double before_ = 0;  // seconds of training before it went on
  Clock::time_point went_on_;
};

}  // namespace gyre
