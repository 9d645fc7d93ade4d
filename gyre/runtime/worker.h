// A worker runs its program action by action. It never blocks: try_step either performs the next action or says that
// something it needs has not arrived. Executors decide what to do then, and so share this one loop body.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gyre/runtime/channel.h"
#include "gyre/runtime/intake.h"
#include "gyre/runtime/norm_exchange.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/segment.h"
#include "gyre/schedule/delay.h"

namespace gyre {

// A replica's gradient of one window, on its way to the owner.
struct ReducedGradient {
  FlatBuffer sum;     // over the replica's microbatches of the window
  int64_t delay = 0;  // of the first of them
};

template <typename Message>
using Channels = std::vector<std::vector<std::unique_ptr<Channel<Message>>>>;  // [pipeline][stage]

// What workers of one segment share. Activations come *into* a stage from below, gradients into it from above.
struct SegmentShared {
  Pipeline& pipeline;
  const Segment& segment;
  ReplicaNumbers replicas;
  Intake intake;
  NormExchange norms;
  Channels<at::Tensor> activations;
  Channels<at::Tensor> gradients;
  Channels<ReducedGradient> reductions;  // to the stage's owner
  Channels<WeightReader> versions;       // from the owner to replicas that adopt
};

// Where a worker reports; called on the worker's thread.
struct WorkerSink {
  std::function<void(int64_t microbatch, double loss)> loss;
  std::function<void(int stage, int64_t update, std::vector<double> squared_norms)> updated;
};

class Worker {
 public:
  Worker(int number, SegmentShared& shared, WorkerSink sink);

  // Performs the next action if everything it needs is there. Errors: RunError (non-finite loss or gradient, a version
  // that differs from the schedule's analysis).
  enum class Step { Done, MustWait, Finished };
  Step try_step();

  // "worker 2 at 2F17, waiting for the activation of 1F17 from worker 1". Any thread.
  std::string status() const;
  // "2F17": the action it is at, or is inside. Any thread.
  std::string action() const;

  int number() const { return number_; }
  const WorkerReport& report() const { return report_; }
  // Adds what was seen at this worker's stages to `report`.
  void contribute(SegmentReport& report) const;

 private:
  // A microbatch between its forward and its backward at one stage.
  struct InFlight {
    int64_t version = 0;   // read by the forward, counted from the segment's start
    WeightReader stashed;  // with WeightPolicy::Stash
    StageSaved saved;
    at::Tensor input;  // with recompute; then `saved` is empty until the backward
    LayerContext context;
  };
  struct StageState {
    std::map<int64_t, InFlight> in_flight;       // by microbatch
    std::map<int64_t, int64_t> delay, mismatch;  // seen: value -> microbatches
    std::map<int64_t, int64_t> first_delay;      // of open windows: the delay of the first gradient in
    bool adopts = false;                         // its version changes at its own A, not at the update
    StageSizes sizes;
    int64_t skipped = 0;  // updates of the owner here
    int64_t peak_in_flight = 0;
    size_t peak_weight_buffers = 0;
  };

  // An update that is being made ready.
  struct PendingUpdate {
    std::vector<std::optional<ReducedGradient>> gathered;  // [pipeline]; once all are there, the first has their sum
    std::vector<double> norms;                             // squared, of the sum; empty until it is complete
  };

  bool perform(const Action& action);
  bool forward(const Action& action);
  bool backward(const Action& action);
  void backward_weights(const Action& action);
  bool update(const Action& action);
  bool gather_gradient(int stage, int64_t window);
  std::optional<double> gradient_norm(const Action& action);
  void apply_update(const Action& action, double norm);
  void count_skipped(const Action& action);
  void publish(const Action& action);
  bool adopt(const Action& action);

  void restrict_to(int64_t limit);
  int64_t checked_version(const Action& action, int64_t found);
  void finish_gradient(const Action& action, const InFlight& microbatch);
  WeightReader backward_weights_version(const Replica& replica, const InFlight& microbatch) const;
  int64_t version_of(const Replica& replica) const { return replica.weights->number - shared_.segment.first_update; }
  void account(const Action& action, std::chrono::steady_clock::time_point started, bool done);
  std::string needs(const Action& action) const;

  Replica& replica_of(const Action& action) { return shared_.pipeline.replica(action.pipeline, action.stage); }
  StageState& state_of(const Action& action) { return states_[{action.pipeline, action.stage}]; }
  const Schedule& schedule() const { return *shared_.segment.schedule; }

  int number_;
  SegmentShared& shared_;
  WorkerSink sink_;
  ProgramCursor cursor_;
  VersionTracker analysis_;
  std::optional<int64_t> expected_version_;           // of the action at the cursor, from the analysis
  std::map<std::pair<int, int>, StageState> states_;  // by (pipeline, stage) hosted here
  std::map<int, PendingUpdate> pending_;              // by stage owned here
  std::chrono::steady_clock::time_point segment_started_ = std::chrono::steady_clock::now();
  std::vector<std::map<ActionKind, ActionCost>> costs_;  // [stage]
  WorkerReport report_;

  mutable std::mutex status_mutex_;
  std::optional<Action> next_;  // what status() describes
};

}  // namespace gyre
