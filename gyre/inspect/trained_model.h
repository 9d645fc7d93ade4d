// A trained run, opened for reading: its configuration, its tokenizer and the weights of a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/data/dataset.h"
#include "gyre/tokenizers/tokenizer.h"
#include "gyre/train/memory.h"
#include "gyre/train/saved_averages.h"

namespace gyre {

struct TrainedModel {
  Config config;
  std::unique_ptr<Tokenizer> tokenizer;  // null if the model was imported without one
  DataIdentity data;                     // what it was trained on; empty if not known
  CheckpointState checkpoint;            // its weights may lie in the file's map, and must not be changed
};

// `step`: of which checkpoint; the newest if not given. Throws InputError if there is no run, checkpoint or averages,
// if a file is damaged, or if `work` needs more memory than there is. The optimizer's state, which is larger than the
// weights, is read for Work::Diagnose alone.
TrainedModel open_trained_model(const std::filesystem::path& run, Work work, std::optional<int64_t> step = std::nullopt,
                                ModelWeights weights = ModelWeights::Trained);

}  // namespace gyre
