// Dropout with a counter-based mask (Srivastava et al., 2014; inverted scaling).
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/core/random.h"

namespace gyre {

// A mask of x's shape and type: 0 with the given probability, else 1 / (1 - probability). Depends only on the stream,
// not on x's values or device.
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);

// An element whose random 32-bit word is below the threshold is dropped; the others get the value.
uint32_t dropout_threshold(double probability);
float dropout_kept_value(double probability);

namespace portable {
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);
}  // namespace portable

}  // namespace gyre
