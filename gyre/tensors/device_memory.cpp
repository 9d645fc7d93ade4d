#include "gyre/tensors/device_memory.h"

#include <ATen/Context.h>

#include "gyre/tensors/cuda/total_memory.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

// libtorch's functions are found by their arguments' namespace, so that a version without them is no error.
template <typename Type>
void add_tensors(Type type, c10::DeviceIndex index, DeviceMemory& memory) {
  if constexpr (requires { getDeviceAllocator(type)->getDeviceStats(index).allocated_bytes[0].peak; }) {
    auto* const allocator = getDeviceAllocator(type);
    if (!allocator->initialized()) return;
    const auto of_all_sizes = allocator->getDeviceStats(index).allocated_bytes[0];
    memory.tensors = of_all_sizes.current;
    memory.peak_tensors = of_all_sizes.peak;
  }
}

}  // namespace

std::optional<DeviceMemory> device_memory(at::Device given) {
  if (!has_streams(given)) return std::nullopt;
  const at::Device device = find_device(given);
  const auto total = cuda::total_memory(device);
  if (!total) return std::nullopt;
  DeviceMemory memory{*total, 0, 0};
  add_tensors(device.type(), device.index(), memory);
  return memory;
}

}  // namespace gyre
