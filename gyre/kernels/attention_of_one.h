// Attention of one new position to itself and to all before it, when a text is written token by token.
#pragma once

#include "gyre/kernels/attention.h"

namespace gyre {

// of.query: (batch, query heads, 1, size); of.key and of.value: (batch, key-value heads, n, size), the new position's
// last. Returns softmax(q k^T / sqrt(size)) v: (batch, 1, query heads * size).
at::Tensor attention_of_one(const HeadTensors& of);

}  // namespace gyre
