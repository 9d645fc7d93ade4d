// A trained run, opened for reading: its configuration, tokenizer and newest checkpoint's weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/data/dataset.h"
#include "gyre/data/tokenizer.h"
#include "gyre/train/memory.h"

namespace gyre {

struct TrainedModel {
  Config config;
  std::unique_ptr<Tokenizer> tokenizer;
  DataIdentity data;  // what it was trained on
  CheckpointState checkpoint;
};

// `step`: which checkpoint; the newest if not given. InputError: no run there, no checkpoint, damage, or more memory
// needed for `work` than there is. The optimizer's state, which is larger than the weights, is read to diagnose alone.
TrainedModel open_trained_model(const std::filesystem::path& run, Work work,
                                std::optional<int64_t> step = std::nullopt);

struct EvaluationResult {
  int64_t step = 0;
  int64_t tokens = 0;
  double val_loss = 0;    // nats per token
  double perplexity = 0;  // exp(val_loss)
};
// Loss over `batches` microbatches of the run's validation tokens (0: all). `data` replaces the run's token directory.
// InputError when the tokens are not those that the run was begun with, or were made by another tokenizer.
EvaluationResult evaluate_run(const TrainedModel& model, int64_t batches, const std::string& data);

struct GenerateOptions {
  std::string prompt;
  int64_t tokens = 200;
  double temperature = 0.8;  // 0: the likeliest token
  int64_t top_k = 0;         // 0: all
  uint64_t seed = 1;
  std::stop_token stop;
};
// Calls `write` with text as it becomes certain (whole UTF-8 characters), the prompt not included. The same options
// give the same text. InputError for an empty prompt or options out of range.
void generate(const TrainedModel& model, const GenerateOptions& options,
              const std::function<void(std::string_view)>& write);

}  // namespace gyre
