// Runs a schedule against a cost model: what would happen, without doing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/schedule/timed_action.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/memory.h"
#include "gyre/simulate/repetition_times.h"
#include "gyre/simulate/timed_costs.h"

namespace gyre {

struct SimulationOptions {
  int64_t microbatches = 0;              // a multiple of the window
  bool trace = false;                    // keep every action's times
  const WorkerPlaces* places = nullptr;  // on a cluster: whose links and speeds are used; null: costs.link
  bool links = false;                    // record what went over each link
  int64_t checkpoint_every = 0;          // updates after which the pipeline drains and is saved; 0: never
  FreeMessages free_messages = FreeMessages::None;
  RepetitionTimes* repetitions = nullptr;  // watches, and may end the run earlier; without checkpoints
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
  int64_t max_mismatch = 0;                     // if the backward reads the latest weights
  std::vector<WorkerMemory> memory;             // [worker]
  double tokens_per_time = 0;                   // 0 where the costs do not say how many tokens a microbatch has
  std::vector<std::vector<TimedAction>> trace;  // [worker]
  std::vector<LinkUse> links;                   // those over which messages went
  int64_t checkpoints = 0;
  double checkpoint_stall = 0;  // of each checkpoint: all workers wait while their states are copied

  // Both are 0 if the makespan is: costs may give all of a schedule's actions a time of 0.
  double utilisation() const;            // share of all workers' time that is spent in actions, at most 1
  double per_time(double amount) const;  // amount / makespan
  double idle(size_t worker) const;      // 0 or more, though sums of times are rounded
};

// How long a checkpoint keeps all workers waiting, besides draining and filling: as measured, or else the time in which
// the worker with the largest state copies it.
double checkpoint_stall(const CostModel& costs, const std::vector<WorkerMemory>& memory, const WorkerPlaces* places);

// The schedule must be valid (schedule/validate.h), as all are that make_schedule() builds. Throws InputError for one
// without programs, for costs that check_costs() refuses, microbatches that are not a multiple of the window, a
// negative checkpoint_every, or a run of too many actions.
Simulation simulate(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options);

// One JSON object on one line. places: those it was simulated on; adds the use of each class of links.
std::string to_json(const Simulation& simulation, const WorkerPlaces* places = nullptr);
// A readable form.
std::string to_text(const Simulation& simulation, const WorkerPlaces* places = nullptr);

}  // namespace gyre
