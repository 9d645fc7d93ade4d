// How far a trained model's Hessian is from diagonal: its (1,1)-norm over the matrices that a rotation turns, in their
// own coordinates and in those of bases.
#pragma once

#include <cstdint>

#include "gyre/inspect/window_pipeline.h"

namespace gyre {

struct HessianOptions {
  int draws = 0;                 // of the estimate
  int64_t microbatches = 0;      // that it is taken over,
  int64_t first_microbatch = 0;  // from this one on
  uint64_t seed = 0;
  const NamedTensors* optimizer_state = nullptr;  // where the run's own bases are looked for
};

struct HessianNorms {
  double own = 0;      // in the weights' own coordinates
  double rotated = 0;  // in the coordinates of the run's bases, or if it has none of bases from fresh gradients
  bool own_bases = false;
};

// The number of weights in the matrices that a rotation turns.
int64_t rotatable_weights(const WindowPipeline& model);
// At the weights that `model` has. It must not clip, and its optimizers are replaced.
HessianNorms measure_hessian(WindowPipeline& model, const HessianOptions& options);

}  // namespace gyre
