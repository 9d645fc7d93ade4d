// Weights of another run that a run begins with: [run] init_from.
#pragma once

#include <filesystem>
#include <optional>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// What init_from names: a run, or RUN/checkpoints/step-00000100.
struct InitialWeights {
  // InputError: neither is there.
  explicit InitialWeights(const std::filesystem::path& init_from);

  RunDirectory run() const { return RunDirectory(root); }
  std::filesystem::path root;  // of the run
  int64_t step = 0;            // of a run, its newest
};

// Nothing where weights are drawn. Of a configuration whose vocabulary is known. InputError: no run or checkpoint is
// there, or it is of another model.
std::optional<CheckpointReader> open_initial_weights(const Config& config);

}  // namespace gyre
