// The KV cache: keys and values of the tokens read so far, for every attention sublayer, so that the next token costs a
// forward of one position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

namespace gyre {

struct KeysAndValues {
  at::Tensor keys, values;  // (batch, key-value heads, capacity, size); the first `position` entries are in use
};

struct DecodingState {
  int64_t capacity = 0;  // number of tokens that fit
  // Tokens read so far. At 0 a forward takes any number of tokens, later one at a time. The caller advances it.
  int64_t position = 0;
  std::map<const void*, KeysAndValues> attentions;  // key: address of the Attention sublayer
};

}  // namespace gyre
