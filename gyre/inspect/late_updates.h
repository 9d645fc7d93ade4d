// What late gradients do to the updates of a trained run. Training goes on from its checkpoint with a delay of every
// stage's own; each update is compared with the one that a gradient at the current weights would have made.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/inspect/window_pipeline.h"

namespace gyre {

struct LateUpdatesOptions {
  std::vector<int64_t> delays;          // [stage], once the pipeline is full
  std::vector<MeanDelays> mean_delays;  // [stage]
  OptimizerConfig optimizer;
  int64_t window = 1;
  int64_t first_microbatch = 0;
  int64_t first_update = 0;  // made before
  int64_t updates = 0;       // that are compared, once every delay is what it will be
};

struct StageComparison {
  double cosine = 0;       // between the update made and the one that a current gradient makes; mean over updates
  double oscillation = 0;  // 1 - |sum of updates| / sum of |update|: 0 all in one direction, near 1 to and fro
};

// From the weights and optimizers that `model` has, which it changes. [stage].
std::vector<StageComparison> compare_late_updates(WindowPipeline& model, const LateUpdatesOptions& options);

}  // namespace gyre
