// The memory of a CUDA device by its properties, which CUDA gives without taking any of it: asking how much is free
// would set the device up for this process, in some hundred MiB, whether it is used later or not.
#include "gyre/tensors/cuda/total_memory.h"

#include <cuda_runtime_api.h>

namespace gyre::cuda {

std::optional<int64_t> total_memory(at::Device device) {
  cudaDeviceProp properties{};
  if (!device.is_cuda()) return std::nullopt;
  if (cudaGetDeviceProperties(&properties, device.index()) != cudaSuccess) {
    cudaGetLastError();  // else the next check of a kernel would find this error
    return std::nullopt;
  }
  return static_cast<int64_t>(properties.totalGlobalMem);
}

}  // namespace gyre::cuda
