// Helpers of the portable paths. A kernel is one function. It uses a faster implementation if there is one for the
// device and type, else its portable path, in namespace portable: ATen's operations, on the inputs' device, in any
// type. A portable path reads no value back from the device, so it also runs on the `meta` device.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::portable {

// (..., width) -> (rows, width)
inline at::Tensor rows_of(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

}  // namespace gyre::portable
