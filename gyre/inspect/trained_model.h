// A trained run, opened for reading: its configuration, tokenizer and newest checkpoint's weights.
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
  std::unique_ptr<Tokenizer> tokenizer;  // none of a model that was imported without one
  DataIdentity data;                     // what it was trained on; empty where that is not known
  CheckpointState checkpoint;
};

// `step`: which checkpoint; the newest if not given. InputError: no run there, no checkpoint, damage, or more memory
// needed for `work` than there is, no averages. The optimizer's state, which is larger than the weights, is read to
// diagnose alone.
TrainedModel open_trained_model(const std::filesystem::path& run, Work work, std::optional<int64_t> step = std::nullopt,
                                ModelWeights weights = ModelWeights::Trained);

}  // namespace gyre
