// Dropout with a counter-based mask (Srivastava et al., 2014; inverted scaling).
#pragma once

#include <ATen/core/Tensor.h>

#include "gyre/core/random.h"

namespace gyre {

// A mask of x's shape, in bools: false with the given probability. Depends only on the stream, not on x's values, type
// or device.
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);

// result = x / (1 - probability) where the mask is true, else 0; rounded once. `result`: of x's shape and type; it may
// be x.
void apply_dropout(const at::Tensor& x, const at::Tensor& mask, double probability, at::Tensor& result);

// An element whose random 32-bit word is below the threshold is dropped.
uint32_t dropout_threshold(double probability);

namespace portable {
at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream);
void apply_dropout(const at::Tensor& x, const at::Tensor& mask, double probability, at::Tensor& result);
}  // namespace portable

}  // namespace gyre
