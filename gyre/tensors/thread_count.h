// How many threads the operations of the calling thread take; it decides the order of sums, so a run's bits.
#pragma once

#include <ATen/Parallel.h>

namespace gyre {

// ATen keeps one number for the whole process, which every thread takes over when it first asks: between a thread's own
// setting and its first operation another thread's would come. So it asks first, and keeps what it sets.
inline void use_threads(int count) {
  at::get_num_threads();
  at::set_num_threads(count);
}

}  // namespace gyre
