// Peak memory of every worker. It follows from the order of its program alone, not from times.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/simulate/cost_model.h"

namespace gyre {

struct WorkerMemory {
  int64_t weights = 0;    // all versions that its replicas hold at once
  int64_t gradients = 0;  // accumulators of windows that are open at once
  int64_t received = 0;   // what other workers send for updates, where these are in other processes
  int64_t optimizer = 0;  // of the stages it owns
  // Held for microbatches in flight, at their peak. Where gradients stay whole they take the place of activations: what
  // that saves is left out here, and what is saved beyond all activations (with recomputation they are few) in
  // `passing`.
  int64_t activations = 0;
  // By how much an action, with the activations that are held during it, exceeds the peak of activations.
  int64_t passing = 0;
  int64_t total() const { return weights + gradients + received + optimizer + activations + passing; }
};

// Each kind is counted at its own peak, which is what allocators keep. The exception: where gradients stay whole and
// take the place of activations (StageCost::replaced_bytes), the two are counted at the peak of their sum.
std::vector<WorkerMemory> peak_memory(const Schedule& schedule, const CostModel& costs, WeightPolicy weights);

// Of each pipeline of a tied model: windows that the last stage has completed and the first has not.
int64_t tied_sums_waiting(const Schedule& schedule);

}  // namespace gyre
