// How much memory this process uses, for reports.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <span>

namespace gyre {

// In bytes.
struct ProcessMemory {
  int64_t resident = 0, peak_resident = 0;  // resident memory of the process, libraries included
  int64_t tensors = 0, peak_tensors = 0;    // large tensors; 0 if unknown
  // Tensors are those on the device, of several the one that holds most; on the CPU they are known to a HostMemory
  // (host_memory.h).
  static ProcessMemory now(at::Device device = at::kCPU);
  static ProcessMemory now(std::span<const at::Device> devices);
};

}  // namespace gyre
