// Sets how many threads the calling thread's operations use. The number decides the order of sums, and so a run's bits.
#pragma once

#include <ATen/Parallel.h>

#include <mutex>
#include <thread>

namespace gyre {

// ATen has a process-wide number, which every thread copies when it first reads the number, overwriting what the thread
// has set before. So this reads it first; afterwards the thread's own setting stays.
inline void use_threads(int count) {
  at::get_num_threads();
  at::set_num_threads(count);
}

// The same, for a thread that has just begun: those that begin after it get the process-wide number that it found, in a
// program whose threads are not gyre's. ATen sets both numbers at once, so another thread sets the one back.
inline void use_threads_here_alone(int count) {
  static std::mutex one_by_one;  // or a thread would find the number that another is about to set back
  const std::lock_guard lock(one_by_one);
  const int everywhere = at::get_num_threads();
  if (everywhere == count) return;
  at::set_num_threads(count);
  std::jthread([everywhere] { at::set_num_threads(everywhere); }).join();
}

}  // namespace gyre
