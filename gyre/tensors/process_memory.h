// How much memory this process uses, for reports.
#pragma once

#include <cstdint>

namespace gyre {

// In bytes.
struct ProcessMemory {
  int64_t resident = 0, peak_resident = 0;  // resident memory of the process, libraries included
  int64_t tensors = 0, peak_tensors = 0;    // large tensors on the host; 0 without a HostMemory (host_memory.h)
  static ProcessMemory now();
};

}  // namespace gyre
