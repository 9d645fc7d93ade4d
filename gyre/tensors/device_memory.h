// The memory of GPUs: what they have, and what this process's tensors take of it.
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

// Null of others than CUDA's. Tensors are counted by libtorch 2.10 and newer; else they are 0. Throws InputError if
// there is no such device. Does not set the device up.
std::optional<DeviceMemory> device_memory(at::Device device);

}  // namespace gyre
