// The microbatches that a configuration trains and evaluates on.
#pragma once

#include <cstdint>
#include <memory>

#include "gyre/batches/batch.h"
#include "gyre/checkpoint/format/manifest.h"
#include "gyre/config/config.h"
#include "gyre/data/sources.h"

namespace gyre {

struct TrainBatches {
  std::unique_ptr<BatchSource> source;
  MixtureRecord mixture;  // of the sources of tokens from now on, for checkpoints; empty if there is only one
};
// Endless; the dataset must outlive it. It goes on where the run of the record `from` stands, by default at the
// beginning. Throws InputError if there is too little text for one sequence.
TrainBatches train_batches(const Config& config, const Dataset& dataset, const CheckpointRecord& from = {});

struct ValidationBatches {
  std::unique_ptr<BatchSource> source;
  int64_t count = 0;  // as many as there are, or as are wanted
};
ValidationBatches validation_batches(const Config& config, const Dataset& dataset, int64_t most);

}  // namespace gyre
