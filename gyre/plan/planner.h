// Finds the fastest schedule: simulates every schedule that the model and the workers allow, with measured costs, and
// ranks those that make updates of the same size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gyre/cluster/cluster.h"
#include "gyre/plan/stage_costs.h"
#include "gyre/plan/steady_state.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/link_use.h"

namespace gyre {

// A schedule read from a file, with the options it was read with.
struct ScheduleOfFile {
  ScheduleOptions options;
  Schedule schedule;
};

struct PlanOptions {
  int workers = 1;                         // of each replica
  int replicas = 1;                        // of the whole pipeline
  bool shard_optimizer = true;             // see ScheduleOptions
  bool tied = false;                       // see ScheduleOptions
  ClipScope clip_scope = ClipScope::None;  // schedules that cannot have it are left out
  int64_t window = 1;  // microbatches of a replica per update; a schedule may need the next larger number
  KindTables own;      // options of single schedules
  std::optional<ScheduleOfFile> from_file;  // ranked too if there is no cluster
  int64_t tokens_per_microbatch = 0;
  int64_t memory_limit = 0;             // bytes per worker; 0: none
  std::optional<WeightPolicy> weights;  // overrides each schedule's own
  OptionNames names = {};
  // If given, all divisions of the cluster's workers are tried: `workers` is ignored, and an update takes `replicas` *
  // `window` microbatches, or a few more if they cannot be divided evenly.
  const Cluster* cluster = nullptr;
  int64_t checkpoint_every = 0;   // updates between checkpoints; 0: only by time
  double checkpoint_seconds = 0;  // between checkpoints if checkpoint_every is 0; 0: none
  size_t detailed_rows = 20;      // number of first rows that get `losses` and `links`
  // If given, is called after every schedule that was simulated, with their number and that of all.
  std::function<void(size_t simulated, size_t all)> progress = {};
};

struct PlanRow {
  ScheduleOptions schedule;
  int pipelines = 1;
  bool recompute = false;
  double tokens_per_second = 0;  // in the steady state
  double bubble_fraction = 0;
  int64_t peak_memory = 0;  // of the worker that needs the most
  int64_t max_delay = 0;
  int64_t max_mismatch = 0;
  // Largest values over all stages: the activation that a stage sends to the next, on another worker, for a microbatch
  // (its gradient is as large); the gradient that a replica sends, and the weights that it receives, for every update.
  int64_t message_bytes = 0, gradient_bytes = 0, weight_bytes = 0;

  // Only on a cluster.
  int workers = 0, hosts = 0;
  double checkpoint_share = 0;  // fraction of the time that checkpoints take: drains and stalls
  Losses losses;                // only in detailed rows
  std::vector<ClassUse> links;  // only in detailed rows

  int64_t update() const { return schedule.window * schedule.replicas; }  // its microbatches
};

struct Plan {
  double tb_over_tf = 0;  // backward time / forward time of the whole model
  int64_t update = 0;     // microbatches of an update that were asked for: no row has fewer
  // Those of the smallest update first, since others are different training. Of one size, the fastest first; of equally
  // fast ones, that with less delay, then less memory.
  std::vector<PlanRow> rows;
  std::vector<std::string> left_out;  // "name: reason"
  // Without a cluster, if the rows' updates differ: the smallest window that the schedules of all rows can have; 0:
  // none was found.
  int64_t common_window = 0;
};

// Errors: InputError if nothing fits the memory limit (the message says what would), or if no schedule suits the
// workers (the message says why).
Plan make_plan(const std::vector<LayerProfile>& layers, const PlanOptions& options);

}  // namespace gyre
