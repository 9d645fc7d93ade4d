// What the portable paths share. A kernel is one function. Where there is a faster way for a device and type it takes
// that; else its portable path, in namespace portable: ATen's operations, on the device of its inputs, in any type. It
// reads no value back from the device, so that it also runs on the `meta` device.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre::portable {

// What sums and statistics are computed in.
inline at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// (..., width) -> (rows, width)
inline at::Tensor rows_of(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

}  // namespace gyre::portable
