// The weights of another run that a run begins with: [run] init_from.
#pragma once

#include <filesystem>
#include <optional>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// What init_from names: a run, or RUN/checkpoints/step-00000100.
struct InitialWeights {
  // Throws InputError if `init_from` is neither.
  explicit InitialWeights(const std::filesystem::path& init_from);

  RunDirectory run() const { return RunDirectory(root); }
  std::filesystem::path root;  // of the run
  int64_t step = 0;            // the newest, if init_from names a run
};

// Opens the checkpoint that [run] init_from names; empty if it names none, so that weights are drawn. The vocabulary of
// `config` must be known. Throws InputError if there is no such run or checkpoint, or it is of another model.
std::optional<CheckpointReader> open_initial_weights(const Config& config);

}  // namespace gyre
