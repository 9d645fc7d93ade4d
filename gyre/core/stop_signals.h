// What a signal that asks for the end means, after those that came before.
#pragma once

#include <chrono>

namespace gyre {

// The first one asks for an orderly end, and a second one for an end at once. But who asks once may send two: `timeout`
// signals its child and then the group, and where a terminal is closed, both the shell and the kernel send SIGHUP. So a
// signal that comes soon after the first is the same request, and SIGHUP is never the second one.
class StopSignals {
 public:
  enum class Meaning { Stop, Same, EndAtOnce };
  using Clock = std::chrono::steady_clock;

  // same_within: for how long after the first one.
  explicit StopSignals(std::chrono::milliseconds same_within = std::chrono::seconds(1)) : same_within_(same_within) {}

  // A signal has come.
  Meaning take(int signal, Clock::time_point now);
  // The first one; 0: none has come.
  int first() const { return first_; }

 private:
  std::chrono::milliseconds same_within_;
  int first_ = 0;
  Clock::time_point since_;
};

}  // namespace gyre
