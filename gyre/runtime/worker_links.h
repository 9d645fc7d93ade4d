// The links of one worker during one segment, by what they are for.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Links that a schedule has no use for are null.
struct ReplicaLinks {
  std::unique_ptr<Receiver> inputs;  // activations, from the stage below
  std::unique_ptr<Sender> outputs;   // to the stage above
  std::unique_ptr<Receiver> grad_outputs;
  std::unique_ptr<Sender> grad_inputs;
  std::unique_ptr<Receiver> earlier_sums;           // parts, from the replica before it in its chain
  std::unique_ptr<Sender> reductions;               // parts, to the next one
  std::vector<std::unique_ptr<Sender>> sums;        // [shard], of the last of a chain: to the owners
  std::vector<std::unique_ptr<Receiver>> versions;  // [shard]: from the owners; empty where it changes with the owner
  // Of a tied weight, between the pipeline's first stage, which has it, and its last; they may be one.
  std::unique_ptr<Sender> tied_weights;  // first
  std::unique_ptr<Receiver> tied_sums;
  std::unique_ptr<Receiver> tied_reads;  // last
  std::unique_ptr<Sender> tied_gradients;
};

struct OwnerLinks {
  int shard = 0;
  std::vector<std::unique_ptr<Receiver>> sums;    // [pipeline]; null where it is not the last of its chain
  std::vector<std::unique_ptr<Sender>> versions;  // [pipeline]; null where the replica changes with the owner
  std::unique_ptr<Sender> norms;                  // to whoever sums them; null: this owner's are all there are
  std::unique_ptr<Receiver> norm_sum;
};

// Of whoever sums the norms that gradients are clipped by: one owner for the whole model, or one of each stage that has
// several.
struct NormSumLinks {
  std::vector<std::unique_ptr<Receiver>> norms;  // of each owner, in the model's order
  std::vector<std::unique_ptr<Sender>> sums;
};

struct WorkerLinks {
  // schedule: of the segment. parts [stage]: in how many a gradient of it travels; of the stages hosted here.
  // global_norm: norms are summed over the model.
  WorkerLinks(int worker, const Schedule& schedule, const std::map<int, int64_t>& parts, bool global_norm,
              Transport& transport);

  // Messages that have come for the worker. Any thread.
  void count_waiting(WorkerStatus& status) const;

  std::map<std::pair<int, int>, ReplicaLinks> replicas;  // by (pipeline, stage) hosted here
  std::map<int, OwnerLinks> owners;                      // by stage owned here
  std::vector<NormSumLinks> norm_sums;                   // that are made here
  std::unique_ptr<Receiver> control;
  std::unique_ptr<Sender> reports;
};

// The two ends, workers or kConductor, of every link that there is under the schedule.
std::set<std::pair<int, int>> linked_workers(const Schedule& schedule, bool global_norm);

// The other ends, which the conductor holds.
struct ConductorLinks {
  ConductorLinks(const Schedule& schedule, Transport& transport);

  std::vector<std::unique_ptr<Sender>> control;    // [worker]
  std::vector<std::unique_ptr<Receiver>> reports;  // [worker]
};

}  // namespace gyre
