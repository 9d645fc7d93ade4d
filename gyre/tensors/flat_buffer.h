// All tensors of a stage in one flat allocation, so that they can be zeroed, copied, converted or sent in one pass.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "gyre/tensors/parameter.h"

namespace gyre {

struct FlatBuffer {
  at::Tensor flat;                  // 1-D, padding included
  std::vector<at::Tensor> tensors;  // views into it, in the order of the specs
};

// The number of elements of such a buffer, padding included.
int64_t flat_elements(std::span<const ParameterSpec> specs);
// Zero-filled. Every tensor starts at a multiple of 32 elements (64 bytes in bf16).
FlatBuffer make_flat_buffer(std::span<const ParameterSpec> specs, at::ScalarType type, at::Device device);
// Makes views into an existing `flat` tensor of flat_elements(specs) elements.
FlatBuffer view_flat_buffer(const at::Tensor& flat, std::span<const ParameterSpec> specs);

}  // namespace gyre
