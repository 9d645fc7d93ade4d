// Helpers of the benchmarks that train: microbatches of random tokens, and an observer that ignores everything.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/core/random.h"
#include "gyre/runtime/segment.h"
#include "timing.h"

namespace gyre::bench {

class RandomTokens final : public BatchSource {
 public:
  RandomTokens(int64_t sequences, int64_t context, int64_t vocabulary)
      : sequences_(sequences), context_(context), vocabulary_(vocabulary) {}

  Batch batch(int64_t index) const override {
    RandomStream stream(1, StreamPurpose::Test, static_cast<uint64_t>(index));
    const at::Tensor tokens = at::empty({sequences_, context_ + 1}, at::kLong);
    auto* data = tokens.data_ptr<int64_t>();
    for (int64_t i = 0; i < tokens.numel(); ++i)
      data[i] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(vocabulary_)));
    return {tokens.narrow(1, 0, context_).contiguous(), tokens.narrow(1, 1, context_).contiguous()};
  }
  int64_t tokens_per_batch() const override { return sequences_ * context_; }

 private:
  int64_t sequences_, context_, vocabulary_;
};

struct Silent final : SegmentObserver {
  void on_loss(int64_t, double) override {}
  void on_update(int, int64_t, const std::vector<double>&) override {}
};

}  // namespace gyre::bench
