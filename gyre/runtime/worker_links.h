// The links of one worker during one segment, grouped by purpose.
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

// Links that the schedule does not use are null.
struct ReplicaLinks {
  std::unique_ptr<Receiver> inputs;  // activations, from the stage below
  std::unique_ptr<Sender> outputs;   // to the stage above
  std::unique_ptr<Receiver> grad_outputs;
  std::unique_ptr<Sender> grad_inputs;
  std::unique_ptr<Receiver> earlier_sums;           // parts, from the previous replica of its chain
  std::unique_ptr<Sender> reductions;               // parts, to the next replica
  std::vector<std::unique_ptr<Sender>> sums;        // [shard]: to the owners; only at the end of a chain
  std::vector<std::unique_ptr<Receiver>> versions;  // [shard]: from the owners; empty if it changes with the owner
  // Links of a tied weight, between the pipeline's first stage, which has it, and its last; both may be the same stage.
  std::unique_ptr<Sender> tied_weights;  // at the first stage
  std::unique_ptr<Receiver> tied_sums;
  std::unique_ptr<Receiver> tied_reads;  // at the last stage
  std::unique_ptr<Sender> tied_gradients;
};

struct OwnerLinks {
  int shard = 0;
  std::vector<std::unique_ptr<Receiver>> sums;    // [pipeline]; null if it is not the end of its chain
  std::vector<std::unique_ptr<Sender>> versions;  // [pipeline]; null if the replica's weights change with the owner's
  std::unique_ptr<Sender> norms;  // to the owner that sums them; null: this owner clips by its own norms alone
  std::unique_ptr<Receiver> norm_sum;
};

// Links of an owner that sums the norms by which gradients are clipped: one for the whole model, or one for each stage
// with several owners.
struct NormSumLinks {
  std::vector<std::unique_ptr<Receiver>> norms;  // one per owner, in the model's order
  std::vector<std::unique_ptr<Sender>> sums;
};

struct WorkerLinks {
  // schedule: the segment's. in_flight: [pipeline][stage], as most_in_flight() says of it. parts: [stage] number of
  // parts in which a gradient travels, for the stages hosted here.
  WorkerLinks(int worker, const Schedule& schedule, const std::vector<std::vector<int64_t>>& in_flight,
              const std::map<int, int64_t>& parts, Transport& transport);

  // Adds the number of messages that have come for the worker. Any thread.
  void count_waiting(WorkerStatus& status) const;

  std::map<std::pair<int, int>, ReplicaLinks> replicas;  // by (pipeline, stage) hosted here
  std::map<int, OwnerLinks> owners;                      // by stage owned here
  std::vector<NormSumLinks> norm_sums;                   // those summed here
  std::unique_ptr<Receiver> control;
  std::unique_ptr<Sender> reports;
};

// The pair of ends, workers or kConductor, of every link under the schedule.
std::set<std::pair<int, int>> linked_workers(const Schedule& schedule);

// The conductor's ends of the control and report links.
struct ConductorLinks {
  ConductorLinks(const Schedule& schedule, Transport& transport);

  std::vector<std::unique_ptr<Sender>> control;    // [worker]
  std::vector<std::unique_ptr<Receiver>> reports;  // [worker]
};

}  // namespace gyre
