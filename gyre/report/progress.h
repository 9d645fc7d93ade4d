// Progress of a run for the user: one line that is redrawn on a terminal, and plain lines now and then elsewhere.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "gyre/report/status_line.h"

namespace gyre {

class Progress {
 public:
  Progress(std::FILE* out, bool is_terminal);

  // total: updates of the whole run. done: updates made before this session.
  void start(int64_t total, int64_t done);
  void step(int64_t step, double loss, double tokens_per_second);
  // Time to the end at this session's mean speed; empty before the session's first update.
  std::optional<double> seconds_left();
  // Prints a line of its own, above the bar.
  void message(const std::string& text);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  double time_left() const;
  std::string line() const;
  void draw();

  std::mutex mutex_;
  StatusLine status_;
  int64_t total_ = 0, first_ = 0, step_ = 0;
  double average_loss_ = 0;  // moving average; not finite if the last loss was not
  double tokens_per_second_ = 0;
  Clock::time_point started_;
};

}  // namespace gyre
