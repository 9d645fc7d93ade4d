// What a model keeps of tokens that it has read, so that the next one costs a forward of one position: keys and values
// of every attention (the "KV cache").
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

namespace gyre {

struct KeysAndValues {
  at::Tensor keys, values;  // (batch, key-value heads, capacity, size); those of the tokens read come first
};

struct DecodingState {
  int64_t capacity = 0;  // tokens that there is room for
  int64_t position = 0;  // tokens read; a forward takes all tokens at first, then one at a time, and leaves this alone
  std::map<const void*, KeysAndValues> attentions;  // by the sublayer
};

}  // namespace gyre
