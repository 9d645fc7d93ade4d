// Batches from tokens: of one source, or of a mixture.
#pragma once

#include <string>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/batches/mixture.h"
#include "gyre/data/token_sequence.h"

namespace gyre {

// How a source's sequences follow each other.
enum class SequenceOrder {
  Random,  // each begins at a uniformly random token, drawn from the stream (seed, microbatch, sequence)
  Epochs,  // the source is cut into sequences; all come once, in a shuffled order, before any comes again
};

// Training: sequence s of microbatch m is the (m * sequences + s)th of all, which says its source.
class DrawnTokenBatches final : public BatchSource {
 public:
  // InputError when a source is shorter than one sequence and its target.
  DrawnTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context, int64_t seed,
                    int64_t vocabulary, SequenceOrder order = SequenceOrder::Random);
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return sequences_ * context_; }

 private:
  int64_t begin_of(const Mixture::Draw& draw, int64_t index, int64_t s) const;

  std::vector<WeightedTokens> sources_;
  int64_t sequences_, context_;
  uint64_t seed_;
  int64_t vocabulary_;
  SequenceOrder order_;
  Mixture mixture_;
};

// Evaluation: a batch holds the next stretches of one source, which do not overlap; the rest at the end is left out. A
// source too short for one whole batch gives smaller batches. Of several sources each has batches by its weight, evenly
// spread, until the first of them ends.
class SequentialTokenBatches final : public BatchSource {
 public:
  // InputError likewise.
  SequentialTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context, int64_t vocabulary);
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return sequences_ * context_; }
  int64_t count() const { return static_cast<int64_t>(plan_.size()); }

 private:
  struct Stretch {
    size_t source = 0;
    int64_t begin = 0;
  };
  std::vector<WeightedTokens> sources_;
  int64_t sequences_, context_, vocabulary_;
  std::vector<Stretch> plan_;  // of each batch
};

}  // namespace gyre
