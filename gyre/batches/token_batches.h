// Batches from token sequences of one source or a mixture.
#pragma once

#include <string>
#include <vector>

#include "gyre/batches/batch.h"
#include "gyre/batches/mixture.h"
#include "gyre/data/token_sequence.h"

namespace gyre {

// The order of a source's sequences.
enum class SequenceOrder {
  Random,  // each begins at a uniformly random token, drawn from the random stream (seed, microbatch, sequence)
  Epochs,  // the source is cut into sequences; each epoch has all of them once, in a new shuffled order
};

// How much of its data a run has used before its next microbatch.
struct DataPosition {
  int64_t microbatches = 0;
  int64_t sequences = 0;       // in these microbatches, which may have been of other sizes
  MixtureRecord mixture = {};  // of the sources until then; empty: their weights have always been those of now
};

// For training. The sequences of a run are numbered through all its microbatches, whatever their sizes; a sequence's
// number determines its source, and its place in the order "epochs". Microbatches before `position` are not those that
// the run had if it changed their size; a run never needs them again.
class DrawnTokenBatches final : public BatchSource {
 public:
  // sources: in the order of their names. Throws InputError if one is shorter than one sequence and its last target
  // (context + 1 tokens).
  DrawnTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context, int64_t seed,
                    int64_t vocabulary, SequenceOrder order = SequenceOrder::Random, const DataPosition& position = {});
  Batch batch(int64_t index) const override;
  int64_t tokens_per_batch() const override { return sequences_ * context_; }
  const Mixture& mixture() const { return mixture_; }

 private:
  uint64_t number_of(int64_t index, int64_t s) const;
  int64_t begin_of(const Mixture::Draw& draw, int64_t index, int64_t s) const;

  std::vector<WeightedTokens> sources_;
  int64_t sequences_, context_;
  uint64_t seed_;
  int64_t vocabulary_;
  SequenceOrder order_;
  DataPosition position_;
  Mixture mixture_;
};

// For evaluation. A batch holds the next sequences of one source, which do not overlap; an incomplete batch at the end
// is left out. If a source is too short for one whole batch, all batches are smaller. Several sources have batches in
// proportion to their weights, evenly interleaved, until the first source ends or there are as many as are wanted.
class SequentialTokenBatches final : public BatchSource {
 public:
  // most: batches that are wanted, at most. Throws InputError likewise.
  SequentialTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context, int64_t vocabulary,
                         int64_t most);
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
  std::vector<Stretch> plan_;  // the sequences of each batch
};

}  // namespace gyre
