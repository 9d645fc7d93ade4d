// Progress of a run for people: one line that is redrawn on a terminal, plain lines now and then elsewhere. Any thread
// may call it.
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

  // Updates in the whole run, and made before this session.
  void start(int64_t total, int64_t done);
  // `tokens`: since the run began.
  void step(int64_t step, double loss, double tokens);
  // How fast it goes; nothing where that cannot be told yet.
  struct Pace {
    std::optional<double> tokens_per_second;
    std::optional<double> seconds_left;
  };
  Pace pace();
  // A line of its own, above the bar.
  void message(const std::string& text);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_left() const;
  std::string line() const;
  void draw();

  std::mutex mutex_;
  StatusLine status_;
  int64_t total_ = 0, first_ = 0, step_ = 0;
  double loss_ = 0;  // smoothed
  double tokens_ = 0, tokens_at_mark_ = 0, tokens_per_second_ = 0;
  Clock::time_point started_, mark_;
};

}  // namespace gyre
