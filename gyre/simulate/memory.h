// Peak memory of every worker. It depends only on the order of the worker's program, not on times.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/simulate/cost_model.h"

namespace gyre {

struct WorkerMemory {
  int64_t weights = 0;    // all versions that its replicas hold at the same time
  int64_t gradients = 0;  // accumulators of windows open at the same time
  int64_t received = 0;   // what other workers send it for updates, if they are in other processes
  int64_t optimizer = 0;  // of the stages it owns
  // For microbatches in flight, at their peak. Where gradients stay whole, they take the place of activations: the
  // saving is subtracted here, and from `passing` as far as it exceeds all activations (with recomputation these are
  // few).
  int64_t activations = 0;
  // By how much the peak during an action, with the activations held during it, exceeds the peak of activations.
  int64_t passing = 0;
  int64_t total() const { return weights + gradients + received + optimizer + activations + passing; }
};

// Each kind is counted at its own peak, because allocators keep that much. The exception: where gradients stay whole
// and take the place of activations (StageCost::replaced_bytes), the two are counted at the peak of their sum.
std::vector<WorkerMemory> peak_memory(const Schedule& schedule, const CostModel& costs, WeightPolicy weights);

// For each pipeline of a tied model: number of windows that the last stage has completed and the first has not.
int64_t tied_sums_waiting(const Schedule& schedule);

}  // namespace gyre
