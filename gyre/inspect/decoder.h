// What a model expects after the tokens that it has read, token by token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gyre/model/stage.h"
#include "gyre/model/sublayers/decoding.h"

namespace gyre {

class Decoder {
 public:
  // stage: the whole model, which outlives this; weights: in its parameters' order, of one type; context: the most
  // tokens that it reads at once. `caches`: keys and values of what was read are kept, where the model's layers can;
  // otherwise every token costs a forward of all.
  Decoder(const Stage& stage, std::vector<at::Tensor> weights, int64_t context, bool caches = true);

  // Reads these after what it has read. Returns the logits of the next token: (vocabulary) fp32. Of more than `context`
  // tokens it sees the last: without a cache always as many as fit. With one it begins again with the last half when
  // the context is full, since every position would be another, and a forward of all of them for each token is what
  // the cache is there to avoid.
  at::Tensor read(std::span<const int32_t> tokens);

 private:
  at::Tensor forward(std::span<const int32_t> tokens, DecodingState* decoding) const;

  const Stage& stage_;
  std::vector<at::Tensor> weights_;
  int64_t context_;
  bool caches_;
  std::vector<int32_t> read_;  // as many as it may see again
  DecodingState state_;
};

}  // namespace gyre
