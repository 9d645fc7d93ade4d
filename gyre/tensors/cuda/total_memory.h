// How much memory a CUDA device has.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace gyre::cuda {

// In bytes. device: with its number. Null for others than CUDA's, and in a build without CUDA.
std::optional<int64_t> total_memory(at::Device device);

}  // namespace gyre::cuda
