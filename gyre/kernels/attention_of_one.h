// Attention of one new position to itself and to all earlier ones, for generating a text token by token.
#pragma once

#include "gyre/kernels/attention.h"

namespace gyre {

// inputs.query: (batch, query heads, 1, size); inputs.key and inputs.value: (batch, key-value heads, n, size), with the
// new position last. Returns softmax(q k^T / sqrt(size)) v: (batch, 1, query heads * size).
at::Tensor attention_of_one(const HeadTensors& inputs);

}  // namespace gyre
