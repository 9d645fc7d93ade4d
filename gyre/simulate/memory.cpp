#include "gyre/simulate/memory.h"

#include <algorithm>
#include <vector>

#include "gyre/schedule/delay.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/schedule/ring_map.h"

namespace gyre {
namespace {

// What one replica holds while its worker's program is walked.
struct ReplicaState {
  int stage = 0;
  int64_t version = 0;   // the current version
  int64_t versions = 0;  // other versions held by microbatches in flight
  int64_t windows = 0;   // open windows
  int64_t peak_versions = 1;
  int64_t peak_windows = 0;
  int64_t incoming = 0;  // 1 if it receives the sums of earlier replicas of its chain
};

class WorkerWalk {
 public:
  WorkerWalk(const Schedule& schedule, int worker, const CostModel& costs, WeightPolicy weights,
             const ReplicaNumbers& numbers, const ReductionChains& chains, bool adopts)
      : schedule_(schedule),
        worker_(worker),
        costs_(costs),
        weights_(weights),
        numbers_(numbers),
        chains_(chains),
        replicas_(numbers.count(worker)),
        tracker_(schedule, numbers, worker),
        adopts_(adopts),
        holders_(replicas_.size()),
        held_version_(replicas_.size()),
        gradients_(replicas_.size()) {
    for (size_t i = 0; i < replicas_.size(); ++i) replicas_[i].stage = numbers.stage(numbers.first(worker) + i);
  }

  WorkerMemory run() {
    int64_t left = representative_actions(schedule_, worker_);
    for (ProgramCursor cursor(schedule_, worker_); left > 0; --left, cursor.advance()) step(*cursor.peek());
    int64_t replaced = 0;
    for (const ReplicaState& replica : replicas_) {
      const StageCost& cost = costs_.stage(replica.stage);
      memory_.weights += replica.peak_versions * cost.weight_bytes;
      if (schedule_.forward_only) continue;
      memory_.gradients += replica.peak_windows * cost.gradient_bytes;
      memory_.received += replica.incoming * cost.gradient_bytes;
      if (schedule_.gradients_stay_whole()) replaced += cost.replaced_bytes;
    }
    memory_.passing = most_in_action_ - memory_.activations;
    const int64_t apart = memory_.activations + memory_.gradients + memory_.passing;
    const int64_t saved = std::clamp<int64_t>(apart - most_together_, 0, replaced);
    // With recomputation most activations are counted in `passing`.
    const int64_t of_activations = std::min(saved, memory_.activations);
    memory_.activations -= of_activations;
    memory_.passing -= saved - of_activations;
    for (int stage = 0; stage < schedule_.stages && !schedule_.forward_only; ++stage) {
      for (const auto& owner : schedule_.owner) {
        if (owner[stage] == worker_) count_owned(stage);
      }
    }
    return memory_;
  }

 private:
  void step(const Action& action) {
    const int64_t found = tracker_.track(action);
    if (action.kind == ActionKind::Update) {
      count_action(costs_.stage(action.stage).update_bytes);
      count_made_version(action.stage);
      const bool made_here = schedule_.placement[0][action.stage] == worker_;
      if (made_here) live_gradients_ -= costs_.stage(action.stage).gradient_bytes;
      return;
    }
    const size_t place = numbers_.of(action.pipeline, action.stage) - numbers_.first(worker_);
    ReplicaState& replica = replicas_[place];
    replica.version = action.kind == ActionKind::Adopt ? found + 1 : found;
    switch (action.kind) {
      case ActionKind::Forward:
        if (schedule_.forward_only) return;
        change_activations(costs_.stage(action.stage).activation_bytes);
        count_action(costs_.stage(action.stage).passing_bytes);
        if (!reads_latest(weights_)) hold(place, action.microbatch, found);
        break;
      case ActionKind::Backward:
        let_go(place, action.microbatch);
        count_gradient(place, action);
        change_activations(-costs_.stage(action.stage).activation_bytes);
        break;
      case ActionKind::BackwardInput:
        let_go(place, action.microbatch);
        count_action(costs_.stage(action.stage).passing_bytes);
        change_activations(costs_.stage(action.stage).split_bytes);
        break;
      case ActionKind::BackwardWeights:
        count_gradient(place, action);
        change_activations(-costs_.stage(action.stage).activation_bytes - costs_.stage(action.stage).split_bytes);
        break;
      default:
        break;
    }
    count_versions(place);
  }

  // An update makes a version while the replica still reads the one before, if the replica has yet to adopt it. With
  // several pipelines it takes the place of sums that have been received for the update.
  void count_made_version(int stage) {
    if (adopts_ && schedule_.worker_of(0, stage) == worker_) {
      count_versions(numbers_.of(0, stage) - numbers_.first(worker_), 1);
    }
  }
  void count_versions(size_t place, int64_t more = 0) {
    ReplicaState& replica = replicas_[place];
    const bool current_is_held = holders_.find(place, replica.version) != nullptr;
    replica.peak_versions = std::max(replica.peak_versions, replica.versions + (current_is_held ? 0 : 1) + more);
  }
  // Counts the owner's shard of a stage: its state, and what the chains ending on other workers send it.
  void count_owned(int stage) {
    const StageCost& cost = costs_.stage(stage);
    memory_.optimizer += cost.optimizer_bytes / schedule_.shards();
    for (int p = 0; p < schedule_.pipelines; ++p) {
      if (!chains_.sends_to_owners(p) || schedule_.worker_of(p, stage) == worker_) continue;
      memory_.received += cost.gradient_bytes / schedule_.shards();
    }
  }
  void change_activations(int64_t by) {
    activations_ += by;
    memory_.activations = std::max(memory_.activations, activations_);
  }
  void hold(size_t place, int64_t microbatch, int64_t version) {
    held_version_.at(place, microbatch / schedule_.pipelines) = version;
    if (++holders_.at(place, version) == 1) ++replicas_[place].versions;
  }
  void let_go(size_t place, int64_t microbatch) {
    const int64_t number = microbatch / schedule_.pipelines;
    const int64_t* version = held_version_.find(place, number);
    if (version == nullptr) return;
    if (--holders_.at(place, *version) == 0) {
      holders_.erase(place, *version);
      --replicas_[place].versions;
    }
    held_version_.erase(place, number);
  }
  void count_gradient(size_t place, const Action& action) {
    ReplicaState& replica = replicas_[place];
    const int64_t window = action.microbatch / schedule_.window;
    const StageCost& cost = costs_.stage(action.stage);
    const int64_t count = ++gradients_.at(place, window);
    replica.incoming = chains_.previous(action.pipeline) ? 1 : 0;
    int64_t replaced = 0;
    if (count == 1) {
      replica.peak_windows = std::max(replica.peak_windows, ++replica.windows);
      live_gradients_ += cost.gradient_bytes;
      if (action.kind == ActionKind::Backward) replaced = cost.replaced_bytes;
    }
    // A weight half holds no more than the input half did, some of which is there already.
    const int64_t there = action.kind == ActionKind::BackwardWeights ? cost.split_bytes : 0;
    count_action(std::max<int64_t>(cost.passing_bytes - there, 0), replaced);
    if (count < schedule_.microbatches_in_window(action.pipeline, window)) return;
    gradients_.erase(place, window);
    --replica.windows;
    if (schedule_.owner[0][action.stage] != worker_) live_gradients_ -= cost.gradient_bytes;  // sent there
  }
  // Memory during an action: activations in flight and what the action holds besides. most_together_ adds the gradients
  // that no update has applied, of which `replaced` bytes are in the place of activations.
  void count_action(int64_t passing, int64_t replaced = 0) {
    const int64_t held = activations_ + passing;
    most_in_action_ = std::max(most_in_action_, held);
    most_together_ = std::max(most_together_, held + live_gradients_ - replaced);
  }

  const Schedule& schedule_;
  int worker_;
  const CostModel& costs_;
  WeightPolicy weights_;
  const ReplicaNumbers& numbers_;
  const ReductionChains& chains_;
  std::vector<ReplicaState> replicas_;
  VersionTracker tracker_;
  bool adopts_;                    // the only pipeline there is does
  RingMap<int64_t> holders_;       // by version: microbatches in flight that hold it
  RingMap<int64_t> held_version_;  // by microbatch
  RingMap<int64_t> gradients_;     // by window: number of gradients in it
  int64_t activations_ = 0, most_in_action_ = 0;
  int64_t live_gradients_ = 0, most_together_ = 0;  // where gradients stay whole
  WorkerMemory memory_;
};

// What a tied weight costs besides itself: the versions that microbatches at the last stage read or are to read, the
// last stage's gradient of the open window, and gradients that wait until the first stage completes the window.
void count_tied(const Schedule& schedule, const CostModel& costs, WeightPolicy weights,
                std::vector<WorkerMemory>& memory) {
  const int last = schedule.stages - 1;
  const int64_t version = costs.stage(0).tied_bytes, gradient = costs.stage(last).tied_bytes;
  const int64_t waiting = tied_sums_waiting(schedule);
  for (const auto& workers : schedule.placement) {
    WorkerMemory& worker = memory[static_cast<size_t>(workers[last])];
    if (last == 0) {
      worker.gradients += gradient;  // one stage is both
      continue;
    }
    // Where the first stage keeps old versions for its own sake, only a last stage in another process has copies.
    const bool copied = reads_latest(weights) || schedule.has_flush();
    (copied ? worker.weights : worker.received) += (1 + waiting) * version;
    if (schedule.forward_only) continue;
    worker.gradients += gradient;
    memory[static_cast<size_t>(workers[0])].received += waiting * gradient;
  }
}

}  // namespace

int64_t tied_sums_waiting(const Schedule& schedule) {
  if (!schedule.tied || schedule.stages == 1 || schedule.forward_only) return 0;
  return longest_delays(schedule).delay[0];
}

std::vector<WorkerMemory> peak_memory(const Schedule& schedule, const CostModel& costs, WeightPolicy weights) {
  check_costs(costs, schedule);
  const ReplicaNumbers numbers(schedule);
  const ReductionChains chains(schedule);
  // Asked once, since it reads the programs of all workers.
  const bool adopts = schedule.pipelines == 1 && adopting_pipelines(schedule)[0];
  std::vector<WorkerMemory> memory;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    memory.push_back(WorkerWalk(schedule, worker, costs, weights, numbers, chains, adopts).run());
  }
  if (schedule.tied) count_tied(schedule, costs, weights, memory);
  return memory;
}

}  // namespace gyre
