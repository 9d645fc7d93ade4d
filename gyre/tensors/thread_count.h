// Sets how many threads the calling thread's operations use. The number decides the order of sums, and so a run's bits.
#pragma once

#include <ATen/Parallel.h>

namespace gyre {

// ATen has a process-wide number, which every thread copies when it first reads the number, overwriting what the thread
// has set before. So this reads it first; afterwards the thread's own setting stays.
inline void use_threads(int count) {
  at::get_num_threads();
  at::set_num_threads(count);
}

}  // namespace gyre
