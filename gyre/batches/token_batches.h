// Batches from token files.
#pragma once

#include "gyre/batches/batch.h"
#include "gyre/data/token_file.h"

namespace gyre {

// Training: sequence s of microbatch m begins at a uniformly random token drawn from the stream (seed, m, s).
class RandomTokenBatches final : public BatchSource {
 public:
  // InputError when the file is shorter than one sequence and its target.
  RandomTokenBatches(const TokenFile& file, int64_t sequences, int64_t context, int64_t seed, int64_t vocabulary);
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return sequences_ * context_; }

 private:
  const TokenFile& file_;
  int64_t sequences_, context_;
  uint64_t seed_;
  int64_t vocabulary_;
};

// Evaluation: batch i holds the next stretches of the file, which do not overlap; the rest at the end is left out. A
// file too short for one whole batch gives smaller batches.
class SequentialTokenBatches final : public BatchSource {
 public:
  SequentialTokenBatches(const TokenFile& file, int64_t sequences, int64_t context, int64_t vocabulary);
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return sequences_ * context_; }
  int64_t count() const { return count_; }

 private:
  const TokenFile& file_;
  int64_t sequences_, context_, vocabulary_, count_;
};

}  // namespace gyre
