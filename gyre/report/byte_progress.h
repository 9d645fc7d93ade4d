// Progress of a command that goes through files, in bytes: an updated line on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "gyre/report/status_line.h"

namespace gyre {

class ByteProgress {
 public:
  using Clock = StatusLine::Clock;
  ByteProgress(std::FILE* out, bool is_terminal, Clock clock = std::chrono::steady_clock::now)
      : clock_(std::move(clock)), line_(out, is_terminal, clock_) {}

  // total: 0 if not known. If `doing` changes or `done` decreases, speed and ETA are measured from then on.
  void at(const std::string& doing, int64_t done, int64_t total);

 private:
  Clock clock_;
  StatusLine line_;
  std::string doing_;
  int64_t done_ = 0, done_at_beginning_ = 0;
  std::chrono::steady_clock::time_point began_ = clock_();
};

}  // namespace gyre
