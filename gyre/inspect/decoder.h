// Runs a model over a text that grows token by token, and returns the logits of the next token.
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
  // stage: the whole model, which must outlive this object; weights: in the order of its parameters, of one type;
  // context: how many tokens it reads at once, at most. `caches`: keys and values of the tokens read are cached, if the
  // model's layers can do that; otherwise every token costs a forward of all.
  Decoder(const Stage& stage, std::vector<at::Tensor> weights, int64_t context, bool caches = true);

  // Reads `tokens` after what it has read before. Returns the logits of the next token: (vocabulary) fp32. Of more than
  // `context` tokens it sees the last: without a cache always as many as fit. With a cache, when the context is full,
  // it starts again with the last half: every token's position changes then, and a forward of all tokens for each new
  // one is what the cache avoids.
  at::Tensor read(std::span<const int32_t> tokens);

 private:
  at::Tensor forward(std::span<const int32_t> tokens, DecodingState* decoding) const;

  const Stage& stage_;
  std::vector<at::Tensor> weights_;
  int64_t context_;
  bool caches_;
  std::vector<int32_t> read_;  // those that it may have to read again
  DecodingState state_;
};

}  // namespace gyre
