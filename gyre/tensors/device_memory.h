// The memory of devices, as libtorch knows it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace gyre {

// In bytes.
struct DeviceMemory {
  int64_t total = 0;                      // of the device
  int64_t tensors = 0, peak_tensors = 0;  // of this process there, now and at most since it began
};

// Null on the CPU, and where libtorch cannot tell: before 2.10, and of some devices.
std::optional<DeviceMemory> device_memory(at::Device device);

}  // namespace gyre
