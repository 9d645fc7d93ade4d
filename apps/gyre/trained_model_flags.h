// What gyre eval, generate and export take to know a model by: a run, which of its checkpoints, which weights of it.
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

  // None: the newest.
  std::optional<int64_t> step() const { return asked_step < 0 ? std::nullopt : std::optional(asked_step); }
  ModelWeights weights() const { return ema ? ModelWeights::Ema : ModelWeights::Trained; }
};

// `flags` outlives the command.
void add_trained_model(CLI::App& command, TrainedModelFlags& flags);

}  // namespace gyre::app
