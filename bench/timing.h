// Processor time of a thread and the median, for benchmarks with and without torch.
#pragma once

#include <ctime>

#include "gyre/core/timing.h"

namespace gyre::bench {

// Processor time of the calling thread. Other programs disturb it less than the clock's time.
inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using gyre::median;

}  // namespace gyre::bench
