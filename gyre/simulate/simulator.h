// Runs a schedule against a cost model: what would happen, without doing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/schedule/timed_action.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/memory.h"
#include "gyre/simulate/timed_costs.h"

namespace gyre {

struct SimulationOptions {
  int64_t microbatches = 0;              // a multiple of the window
  bool trace = false;                    // keep every action's times
  const WorkerPlaces* places = nullptr;  // on a cluster, whose links and speeds are meant; else costs.link's
  bool links = false;                    // keep what went over each link
  int64_t checkpoint_every = 0;          // updates after which the pipeline drains and is saved; 0: never
  FreeMessages free_messages = FreeMessages::None;
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
  std::vector<LinkUse> links;                   // of those over which messages went
  int64_t checkpoints = 0;
  double checkpoint_stall = 0;  // of each: all workers wait while their states are copied

  double utilisation() const;  // share of all workers' time that is spent in actions
};

// How long a checkpoint keeps all workers waiting, besides draining and filling: as measured, or what the worker with
// the largest state takes to copy it.
double checkpoint_stall(const CostModel& costs, const std::vector<WorkerMemory>& memory, const WorkerPlaces* places);

// Errors: InputError for costs of another number of stages, or microbatches that are no multiple of the window.
Simulation simulate(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options);

// One JSON object on one line. places: those that it was simulated on, with what went over each link.
std::string to_json(const Simulation& simulation, const WorkerPlaces* places = nullptr);
// For people.
std::string to_text(const Simulation& simulation, const WorkerPlaces* places = nullptr);

}  // namespace gyre
