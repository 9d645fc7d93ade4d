// The flags by which gyre eval, generate and export select a model: a run, which of its checkpoints, and which weights.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "gyre/train/saved_averages.h"

namespace gyre::app {

struct TrainedModelFlags {
  std::string run;
  int64_t asked_step = -1;
  bool ema = false;

  // Empty: the newest.
  std::optional<int64_t> step() const { return asked_step < 0 ? std::nullopt : std::optional(asked_step); }
  ModelWeights weights() const { return ema ? ModelWeights::Ema : ModelWeights::Trained; }
};

// `flags` must outlive the command.
void add_trained_model(CLI::App& command, TrainedModelFlags& flags);

}  // namespace gyre::app
