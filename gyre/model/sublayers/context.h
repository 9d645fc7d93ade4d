// The context of a forward: what it is given besides weights and input. Also the size of a microbatch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct DecodingState;

// (seed, microbatch, layer) keys the layer's random stream.
struct LayerContext {
  bool training = true;  // a backward follows: dropout is on, and what the backward needs is saved
  uint64_t seed = 0;
  int64_t microbatch = 0;
  int layer = 0;
  at::Tensor targets;  // read by the output head alone; undefined: the head returns logits instead of the loss
  // In training: nobody reads the loss that the head returns before the head's backward has run, so the backward may
  // write it.
  bool loss_in_backward = false;
  // In training: the backward is given the weights that the forward reads, unchanged, so a layer need not copy those
  // that it reads again.
  bool keeps_weights = false;
  // If set, the input continues the tokens read so far, and the head returns only the logits of the last position. Not
  // in training.
  DecodingState* decoding = nullptr;
};

// The size of a microbatch. In doubles, because the sizes of a wrong configuration may overflow any integer.
struct MicrobatchShape {
  double sequences = 0, context = 0;
  double element_bytes = 4;  // of the compute type
  bool adds = false;         // its gradients are added to those of other microbatches
  bool on_host = true;       // computed by the CPU, not by a device
  double tokens() const { return sequences * context; }
};

}  // namespace gyre
