// A schedule in its steady state, and where its workers' time goes.
#pragma once

#include "gyre/simulate/simulator.h"

namespace gyre {

struct SteadyState {
  int64_t microbatches = 0;
  double seconds = 0;     // that so many take once the pipeline is full
  double busy = 0;        // of these, a worker's mean
  double fill = 0;        // more that the first take, and a drain
  Simulation simulation;  // of twice as many, from an empty pipeline on

  double bubble() const { return 1 - busy / seconds; }
};

// options.microbatches is not looked at.
SteadyState steady_state(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options);

// Shares of all workers' time in the steady state. What is left of 1 is forwards, backwards and updates as they would
// be with stages of equal cost on workers of equal speed.
struct Losses {
  double bubble = 0;      // the schedule's own, with stages and workers alike and messages free
  double imbalance = 0;   // more, since stages or workers are not alike
  double messages = 0;    // more, since activations and their gradients take time
  double reductions = 0;  // more, since gradients of replicas and new weights do
};

// Of what steady_state found with the same options.
Losses find_losses(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options,
                   const SteadyState& found);

}  // namespace gyre
