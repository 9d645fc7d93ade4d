// A worker runs its program action by action. It never waits for another one: try_step either performs the next action
// or returns that something it needs has not arrived. (On a device it may wait for its own work there.) Executors
// decide what to do then, so all share this loop body. A worker accesses its own state and its links only.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "gyre/runtime/need.h"
#include "gyre/runtime/norm_sum.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/runtime/reports.h"
#include "gyre/runtime/running_owner.h"
#include "gyre/runtime/running_replica.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/worker_context.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

class Worker {
 public:
  // Publishes the first version of the segment to the replicas of the stages owned here. `numbers` must be made from
  // segment.schedule, and `in_flight` be what most_in_flight() says of it. All other arguments must outlive it.
  Worker(WorkerState& state, const PipelinePlan& plan, const Segment& segment, const ReplicaNumbers& numbers,
         const std::vector<std::vector<int64_t>>& in_flight, Transport& transport);

  // Performs the next action if everything it needs is there. Returns MustWait only if nothing at all was done. On a
  // device with streams, Done means handed to the worker's stream. Throws RunError if a version differs from the
  // schedule's analysis.
  enum class Step { Done, MustWait, Finished };
  Step try_step();

  // The current action, what it needs, and the messages that have come. Times of waiting are left to the caller. Any
  // thread.
  WorkerStatus status() const;
  // The one other worker that it waits for, or kNobody. On the worker's own thread, after MustWait.
  int waits_for() const { return need_.worker; }

  int number() const { return state_.number; }
  at::Device device() const { return state_.device; }

 private:
  using Place = std::pair<int, int>;  // (pipeline, stage)

  void add_replicas();
  void add_owners();
  void serve_others();
  void heed_control();
  bool perform(const Action& action);
  void settle_done();
  bool settle_oldest();
  void account(const ActionsAhead::Done& done);
  bool report_end();
  Need find_need(const Action& action) const;
  std::vector<int> hosts_of_gradients(int stage) const;
  std::vector<int> owners_whose_norms_count(int stage) const;
  int only_other(std::vector<int> workers) const;

  const Schedule& schedule() const { return context_.schedule(); }

  WorkerState& state_;
  const PipelinePlan& plan_;
  WorkerLinks links_;
  WorkerContext context_;
  ProgramCursor cursor_;
  std::map<Place, RunningReplica> replicas_;
  std::map<int, RunningOwner> owners_;  // by stage
  std::vector<NormSum> norm_sums_;
  FinalReport seen_;
  Need need_;  // of the last step that returned MustWait
  bool ended_ = false;
};

}  // namespace gyre
