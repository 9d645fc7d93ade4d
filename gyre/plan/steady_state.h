// Simulates a schedule's steady state, and finds where its workers' time goes.
#pragma once

#include "gyre/simulate/simulator.h"

namespace gyre {

struct SteadyState {
  double seconds = 0;     // time of a microbatch once the pipeline is full
  double busy = 0;        // mean busy time of a worker in `seconds`
  double fill = 0;        // additional time of a run: one fill and one drain
  Simulation simulation;  // of a run that shows this, from an empty pipeline on

  double bubble() const { return 1 - busy / seconds; }
};

// options.microbatches is ignored.
SteadyState steady_state(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options);

// Fractions of all workers' time in the steady state. The rest is forwards, backwards and updates, as they would be
// with stages of equal cost on workers of equal speed.
struct Losses {
  double bubble = 0;      // the schedule's own: with equal stages and workers, and free messages
  double imbalance = 0;   // lost besides because stages or workers differ
  double messages = 0;    // lost besides because sending activations and their gradients takes time
  double reductions = 0;  // lost besides because sending replicas' gradients and new weights takes time
};

// found: the result of steady_state with the same arguments.
Losses find_losses(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options,
                   const SteadyState& found);

}  // namespace gyre
