// Attention of one new position to itself and to all earlier ones, for generating a text token by token.
#pragma once

#include "gyre/kernels/attention.h"

namespace gyre {

// inputs.query: (batch, query heads, 1, size). inputs.key and inputs.value: (batch, key-value heads, capacity, size),
// of which the first `seen` positions are in use, the new one being the last of them; others may be overwritten.
// Returns softmax(q k^T / sqrt(size)) v: (batch, 1, query heads * size). In bf16, on a CPU with instructions for it, it
// has the bits of the last row of attention() over these positions.
at::Tensor attention_of_one(const HeadTensors& inputs, int64_t seen);

}  // namespace gyre
