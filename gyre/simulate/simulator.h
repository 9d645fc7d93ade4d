// Runs a schedule against a cost model: what would happen, without doing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/schedule/timed_action.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/memory.h"

namespace gyre {

struct SimulationOptions {
  int64_t microbatches = 0;  // a multiple of the window
  bool trace = false;        // keep every action's times
};

struct Simulation {
  std::string schedule;
  int stages = 0;
  int pipelines = 0;
  int64_t microbatches = 0;
  int64_t window = 0;
  double makespan = 0;
  std::vector<double> busy;                     // [worker]
  int64_t max_delay = 0;                        // in updates
  int64_t max_mismatch = 0;                     // with the latest weights in the backward
  std::vector<WorkerMemory> memory;             // [worker]
  double tokens_per_time = 0;                   // 0 where the costs do not say how many tokens a microbatch has
  std::vector<std::vector<TimedAction>> trace;  // [worker]

  double utilisation() const;  // share of all workers' time that is spent in actions
};

// Errors: InputError for costs of another number of stages, or microbatches that are no multiple of the window.
Simulation simulate(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options);

// One JSON object on one line.
std::string to_json(const Simulation& simulation);
// For people.
std::string to_text(const Simulation& simulation);

}  // namespace gyre
