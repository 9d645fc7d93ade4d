// How much memory this process holds, for whoever reports it.
#pragma once

#include <cstdint>

namespace gyre {

// In bytes.
struct ProcessMemory {
  int64_t resident = 0, peak_resident = 0;  // all that it has of the system, libraries included
  int64_t tensors = 0, peak_tensors = 0;    // large ones on the host; 0 where nobody counts them (host_memory.h)
  static ProcessMemory now();
};

}  // namespace gyre
