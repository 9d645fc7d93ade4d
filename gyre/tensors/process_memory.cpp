#include "gyre/tensors/process_memory.h"

#include "gyre/core/memory_limit.h"
#include "gyre/tensors/device_memory.h"
#include "gyre/tensors/host_memory.h"

namespace gyre {

ProcessMemory ProcessMemory::now(at::Device device) {
  ProcessMemory memory{static_cast<int64_t>(resident_bytes()), static_cast<int64_t>(peak_resident_bytes()), 0, 0};
  if (!device.is_cpu()) {
    const DeviceMemory there = device_memory(device).value_or(DeviceMemory());
    memory.tensors = there.tensors;
    memory.peak_tensors = there.peak_tensors;
  } else if (const auto here = HostMemory::of_process()) {
    memory.tensors = static_cast<int64_t>(here->live);
    memory.peak_tensors = static_cast<int64_t>(here->peak);
  }
  return memory;
}

ProcessMemory ProcessMemory::now(std::span<const at::Device> devices) {
  ProcessMemory fullest;
  for (const at::Device device : devices) {
    const ProcessMemory memory = now(device);
    if (memory.tensors >= fullest.tensors) fullest = memory;
  }
  return devices.empty() ? now() : fullest;
}

}  // namespace gyre
