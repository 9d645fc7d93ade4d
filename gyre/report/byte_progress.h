// Progress of a command that goes through files, in bytes: an updated line on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "gyre/report/status_line.h"

namespace gyre {

class ByteProgress {
 public:
  ByteProgress(std::FILE* out, bool is_terminal) : line_(out, is_terminal) {}
  ~ByteProgress() { line_.finish(); }
  ByteProgress(const ByteProgress&) = delete;
  ByteProgress& operator=(const ByteProgress&) = delete;

  // total: 0 if not known. If `doing` changes or `done` decreases, the time for speed and ETA restarts.
  void at(const std::string& doing, int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  StatusLine line_;
  std::string doing_;
  int64_t done_ = 0;
  Clock::time_point began_ = Clock::now();
};

}  // namespace gyre
