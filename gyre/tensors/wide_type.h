// The type of sums, statistics and losses.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// fp32 for tensors in fp32 and less, fp64 for those in fp64.
inline at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace gyre
