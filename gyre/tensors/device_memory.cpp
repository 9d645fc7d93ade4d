#include "gyre/tensors/device_memory.h"

#include <ATen/Context.h>

#include "gyre/tensors/device.h"

namespace gyre {
namespace {

// libtorch's functions are found by their arguments' namespace, so that a version without them is no error.
template <typename Type>
std::optional<DeviceMemory> of_allocator(Type type, c10::DeviceIndex index) {
  if constexpr (requires { getDeviceAllocator(type)->getMemoryInfo(index); }) {
    auto* const allocator = getDeviceAllocator(type);
    const auto [free, total] = allocator->getMemoryInfo(index);
    DeviceMemory memory{static_cast<int64_t>(total), 0, 0};
    if (allocator->initialized()) {
      const auto of_all_sizes = allocator->getDeviceStats(index).allocated_bytes[0];
      memory.tensors = of_all_sizes.current;
      memory.peak_tensors = of_all_sizes.peak;
    }
    return memory;
  } else {
    return std::nullopt;
  }
}

}  // namespace

std::optional<DeviceMemory> device_memory(at::Device device) {
  if (!has_streams(device)) return std::nullopt;
  try {
    return of_allocator(device.type(), find_device(device).index());
  } catch (const c10::Error&) {  // this device's allocator does not tell
    return std::nullopt;
  }
}

}  // namespace gyre
