// Which schedule to take: every one that the model and the workers allow is simulated with measured costs and ranked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gyre/cluster/cluster.h"
#include "gyre/plan/steady_state.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/cost_model.h"
#include "gyre/simulate/link_use.h"

namespace gyre {

// One layer of the model, measured for one microbatch; seconds and bytes.
struct LayerProfile {
  std::string name;
  double forward = 0, backward_input = 0, backward_weights = 0;
  double update = 0;
  int64_t input_bytes = 0;  // what recomputation keeps of a stage that begins here
  int64_t output_bytes = 0;
  int64_t activation_bytes = 0;  // held between forward and backward
  int64_t passing_bytes = 0;     // the most that its backward holds beside that
  int64_t split_bytes = 0;       // what a split backward holds besides between its halves
  int64_t weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  int64_t tied_bytes = 0;  // see StageCost
  double backward() const { return backward_input + backward_weights; }
};

// A schedule that is in a file, with the options it was read with.
struct ScheduleOfFile {
  ScheduleOptions options;
  Schedule schedule;
};

struct PlanOptions {
  int workers = 1;              // of each replica
  int replicas = 1;             // of every schedule, which share an update
  bool shard_optimizer = true;  // see ScheduleOptions
  int64_t window = 1;           // microbatches of a replica per update, or the next number that a schedule can serve
  KindTables own;               // options of single schedules
  std::optional<ScheduleOfFile> from_file;  // ranked too, where there is no cluster
  int64_t tokens_per_microbatch = 0;
  int64_t memory_limit = 0;             // bytes per worker; 0: none
  std::optional<WeightPolicy> weights;  // instead of each schedule's own
  OptionNames names = {};
  // With a cluster its workers are shared out: `workers` is not looked at, and an update takes as many microbatches as
  // `replicas` of `window` do, or a few more where these cannot be divided.
  const Cluster* cluster = nullptr;
  int64_t checkpoint_every = 0;   // updates between checkpoints; 0: only by time
  double checkpoint_seconds = 0;  // between them otherwise; 0: none
  size_t detailed_rows = 20;      // the fastest, of which losses and links are found
};

struct PlanRow {
  ScheduleOptions schedule;
  int pipelines = 1;
  bool recompute = false;
  double tokens_per_second = 0;  // in the steady state
  double bubble_fraction = 0;
  int64_t peak_memory = 0;  // of the worker that needs most
  int64_t max_delay = 0;
  int64_t max_mismatch = 0;
  // The most that one stage sends the next for a microbatch, as much comes back; the largest stage's gradient, which a
  // replica sends on for every update, and its weights, which it takes then.
  int64_t message_bytes = 0, gradient_bytes = 0, weight_bytes = 0;

  // On a cluster.
  int workers = 0, hosts = 0;
  double checkpoint_share = 0;  // of the time: drains and stalls
  Losses losses;                // of detailed rows
  std::vector<ClassUse> links;
};

struct Plan {
  double tb_over_tf = 0;              // of the whole model
  std::vector<PlanRow> rows;          // fastest first
  std::vector<std::string> left_out;  // "name: why"
};

// Costs of the schedule's stages, which a partition makes of the layers, balanced by what they take from one update to
// the next, with `window` microbatches. Errors: InputError for more stages than layers.
CostModel stage_costs(const std::vector<LayerProfile>& layers, const Schedule& schedule, int64_t window, bool recompute,
                      int64_t tokens_per_microbatch);

// Errors: InputError when nothing fits the memory limit, saying what would, or no schedule suits the workers, saying
// why.
Plan make_plan(const std::vector<LayerProfile>& layers, const PlanOptions& options);

}  // namespace gyre
