// What is kept while a text is generated, so that the next token costs a forward of one position: the KV cache, which
// is the keys and values of the tokens read so far for every attention sublayer, and packed copies of matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

#include "gyre/kernels/linear_of_one.h"

namespace gyre {

struct KeysAndValues {
  at::Tensor keys, values;  // (batch, key-value heads, capacity, size); the first `position` entries are in use
};

struct DecodingState {
  int64_t capacity = 0;  // number of tokens that fit
  // Tokens read so far. At 0 a forward takes any number of tokens, later one at a time. The caller advances it.
  int64_t position = 0;
  std::map<const void*, KeysAndValues> attentions;  // key: address of the Attention sublayer
  std::map<const void*, LinearOfOne> linears;       // for one token at a time; key: address of the Linear
};

}  // namespace gyre
