// Dropout with a counter-based mask (Srivastava et al., 2014; inverted scaling).
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/core/random.h"

namespace gyre {

// A mask of x's shape and type: 0 with the given probability, else 1 / (1 - probability). Depends only on the stream,
// not on x's values or device.
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);

// The mask in whole numbers: elements whose random word is below the threshold are dropped, others get the value.
uint32_t dropout_threshold(double probability);
float dropout_kept_value(double probability);

namespace portable {
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);
}  // namespace portable

}  // namespace gyre
