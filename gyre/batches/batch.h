// The input of training: one microbatch of inputs and targets, determined by its index.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct Batch {
  at::Tensor inputs;   // (batch, context) int64 tokens; any shape and type for a user's own model
  at::Tensor targets;  // (batch, context) int64 tokens, the inputs shifted by one
};

// Gives microbatch `index` of an endless, deterministic stream. Called from several workers at once: implementations
// are immutable after construction.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch batch(int64_t index) const = 0;
  // Tokens (or samples) in one microbatch, for throughput figures.
  virtual int64_t tokens_per_batch() const = 0;
};

}  // namespace gyre
