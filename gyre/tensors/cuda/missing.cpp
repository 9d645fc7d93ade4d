// In a build without CUDA.
#include "gyre/tensors/cuda/total_memory.h"

namespace gyre::cuda {

std::optional<int64_t> total_memory(at::Device /*device*/) {
  return std::nullopt;
}

}  // namespace gyre::cuda
