#include "gyre/tensors/process_memory.h"

#include "gyre/core/memory_limit.h"
#include "gyre/tensors/host_memory.h"

namespace gyre {

ProcessMemory ProcessMemory::now() {
  const HostMemory::Bytes tensors = HostMemory::of_process().value_or(HostMemory::Bytes{});
  return {static_cast<int64_t>(resident_bytes()), static_cast<int64_t>(peak_resident_bytes()),
          static_cast<int64_t>(tensors.live), static_cast<int64_t>(tensors.peak)};
}

}  // namespace gyre
