#include "gyre/simulate/memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

// What one replica holds while its worker's program is walked.
struct ReplicaState {
  std::map<int64_t, int64_t> stashed;           // version -> microbatches in flight that hold it
  std::map<int64_t, int64_t> backward_version;  // microbatch -> the version it holds
  std::map<int64_t, int64_t> windows;           // open window -> gradients in it
  int64_t version = 0;
  int64_t in_flight = 0;
  size_t peak_versions = 1;
  size_t peak_windows = 0;
};

class WorkerWalk {
 public:
  WorkerWalk(const Schedule& schedule, int worker, const CostModel& costs, WeightPolicy weights)
      : schedule_(schedule), worker_(worker), costs_(costs), weights_(weights), tracker_(schedule, worker) {
    for (int p = 0; p < schedule.pipelines; ++p) {
      for (int stage = 0; stage < schedule.stages; ++stage) {
        if (schedule.worker_of(p, stage) == worker) replicas_[{p, stage}];
      }
    }
  }

  WorkerMemory run() {
    // Twice, so that the microbatches in flight are all from after the start.
    for (ProgramCursor cursor(schedule_, worker_, 2 * representative_microbatches(schedule_)); cursor.peek();
         cursor.advance()) {
      step(*cursor.peek());
    }
    for (const auto& [place, replica] : replicas_) {
      const StageCost& cost = costs_.stage(place.second);
      memory_.weights += static_cast<int64_t>(replica.peak_versions) * cost.weight_bytes;
      if (!schedule_.forward_only)
        memory_.gradients += static_cast<int64_t>(replica.peak_windows) * cost.gradient_bytes;
    }
    for (int stage = 0; stage < schedule_.stages && !schedule_.forward_only; ++stage) {
      if (schedule_.owner[stage] == worker_) memory_.optimizer += costs_.stage(stage).optimizer_bytes;
    }
    return memory_;
  }

 private:
  void step(const Action& action) {
    const int64_t found = tracker_.track(action);
    if (action.kind == ActionKind::Update) return;
    ReplicaState& replica = replicas_[{action.pipeline, action.stage}];
    const int64_t window = action.microbatch / schedule_.window;
    switch (action.kind) {
      case ActionKind::Forward:
        replica.version = found;
        if (schedule_.forward_only) return;
        change_activations(action.stage, +1);
        if (weights_ == WeightPolicy::Stash) {
          ++replica.stashed[found];
          replica.backward_version[action.microbatch] = found;
        }
        break;
      case ActionKind::Backward:
        replica.version = found;
        release_stash(replica, action.microbatch);
        count_gradient(replica, action, window);
        change_activations(action.stage, -1);
        break;
      case ActionKind::BackwardInput:
        replica.version = found;
        release_stash(replica, action.microbatch);
        break;
      case ActionKind::BackwardWeights:
        count_gradient(replica, action, window);
        change_activations(action.stage, -1);
        break;
      case ActionKind::Adopt:
        replica.version = found + 1;
        break;
      case ActionKind::Update:
        break;
    }
    const bool current_is_stashed = replica.stashed.count(replica.version) > 0;
    replica.peak_versions = std::max(replica.peak_versions, replica.stashed.size() + (current_is_stashed ? 0 : 1));
  }

  void change_activations(int stage, int by) {
    activations_ += by * costs_.stage(stage).activation_bytes;
    memory_.activations = std::max(memory_.activations, activations_);
  }
  static void release_stash(ReplicaState& replica, int64_t microbatch) {
    const auto entry = replica.backward_version.find(microbatch);
    if (entry == replica.backward_version.end()) return;
    const auto held = replica.stashed.find(entry->second);
    if (--held->second == 0) replica.stashed.erase(held);
    replica.backward_version.erase(entry);
  }
  void count_gradient(ReplicaState& replica, const Action& action, int64_t window) {
    const int64_t count = ++replica.windows[window];
    replica.peak_windows = std::max(replica.peak_windows, replica.windows.size());
    if (count == schedule_.microbatches_in_window(action.pipeline, window)) replica.windows.erase(window);
  }

  const Schedule& schedule_;
  int worker_;
  const CostModel& costs_;
  WeightPolicy weights_;
  VersionTracker tracker_;
  std::map<std::pair<int, int>, ReplicaState> replicas_;
  int64_t activations_ = 0;
  WorkerMemory memory_;
};

}  // namespace

std::vector<WorkerMemory> peak_memory(const Schedule& schedule, const CostModel& costs, WeightPolicy weights) {
  check_costs(costs, schedule);
  std::vector<WorkerMemory> memory;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    memory.push_back(WorkerWalk(schedule, worker, costs, weights).run());
  }
  return memory;
}

}  // namespace gyre
