// What late gradients do to the updates of a trained run. Training continues from its checkpoint with each stage's own
// delay, and each update is compared with the one that a gradient at the current weights would have made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gyre/inspect/window_pipeline.h"

namespace gyre {

struct LateUpdatesOptions {
  std::vector<int64_t> delays;          // [stage], once the pipeline is full
  std::vector<MeanDelays> mean_delays;  // [stage]
  OptimizerConfig optimizer;
  int64_t window = 1;
  int64_t first_microbatch = 0;
  int64_t first_update = 0;                                 // updates made before
  int64_t updates = 0;                                      // to compare, once every stage has its full delay
  std::function<void(int64_t done, int64_t all)> progress;  // told of each update, if there is one
};

// Empty if no update changes any weight, as with a learning rate of 0.
struct StageComparison {
  std::optional<double> cosine;       // between the update made and the one that a current gradient makes; their mean
  std::optional<double> oscillation;  // 1 - |sum of updates| / sum of |update|: 0 all in one direction, 1 to and fro
};

// Starts from the weights and optimizers of `model`, and changes both. Returns [stage].
std::vector<StageComparison> compare_late_updates(WindowPipeline& model, const LateUpdatesOptions& options);

}  // namespace gyre
