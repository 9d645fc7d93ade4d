// How far a trained model's Hessian is from diagonal: its (1,1)-norm over the matrices that basis rotation rotates, in
// their own coordinates and in those of bases.
#pragma once

#include <cstdint>
#include <functional>

#include "gyre/inspect/diagnostics.h"
#include "gyre/inspect/window_pipeline.h"

namespace gyre {

struct HessianOptions {
  int draws = 0;                 // for the estimate
  int64_t microbatches = 0;      // that the Hessian is averaged over
  int64_t first_microbatch = 0;  // the first of these
  uint64_t seed = 0;
  const NamedTensors* optimizer_state = nullptr;            // in which the run's own bases are looked for
  std::function<void(int64_t done, int64_t all)> progress;  // told of each product with the Hessian, if there is one
};

// The number of weights in the matrices that basis rotation rotates.
int64_t rotatable_weights(const WindowPipeline& model);
// Measures at the weights of `model`, which must not clip gradients. Its optimizers are replaced.
HessianNorms measure_hessian(WindowPipeline& model, const HessianOptions& options);

}  // namespace gyre
