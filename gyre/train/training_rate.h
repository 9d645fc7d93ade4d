// How fast a session trains. Asynchronous pipelines report their updates in bursts, so the time between two of them
// says nothing: the rate is taken over as many of the last updates as make up a second of training.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace gyre {

class TrainingRate {
 public:
  using Clock = std::chrono::steady_clock;

  // Training goes on, or stops for an evaluation or a save. The time from stop() to go_on() does not count.
  void go_on(Clock::time_point now);
  void stop(Clock::time_point now);
  // Counts an update of `tokens` tokens. Returns tokens per second of as few of the last updates as took a second
  // together; of the whole session while it is shorter; of this update alone if it took longer.
  double update(int64_t tokens, Clock::time_point now);

 private:
  double seconds_at(Clock::time_point now) const;

  struct Mark {
    double seconds = 0;  // of training in this session
    int64_t tokens = 0;
  };
  // One after each update; the first is the newest that is a second old, or else the session's beginning.
  std::deque<Mark> marks_ = {Mark{}};
  double before_ = 0;  // seconds of training before the last go_on()
  Clock::time_point went_on_;
};

}  // namespace gyre
