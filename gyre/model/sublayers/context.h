// What a forward is told besides weights and input, and the size of a microbatch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct DecodingState;

// (seed, microbatch, layer) keys the layer's random stream.
struct LayerContext {
  bool training = true;  // a backward follows: dropout is on, and what the backward needs is kept
  uint64_t seed = 0;
  int64_t microbatch = 0;
  int layer = 0;
  at::Tensor targets;  // read by the output head alone; undefined: the head returns logits instead of the loss
  // In training: the loss that the head returns is not looked at before its backward has run, which may put it there.
  bool loss_in_backward = false;
  // Set: the input goes on where this ends, and the head returns logits of the last position alone. Not in training.
  DecodingState* decoding = nullptr;
};

// The size of a microbatch, in doubles: a wrong configuration's sizes fit no integer.
struct MicrobatchShape {
  double sequences = 0, context = 0;
  double element_bytes = 4;  // of the compute type
  bool adds = false;         // its gradients are added to those of other microbatches
  double tokens() const { return sequences * context; }
};

}  // namespace gyre
