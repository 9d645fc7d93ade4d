// A worker runs its program action by action. It never blocks: try_step either performs the next action or says that
// something it needs has not arrived. Executors decide what to do then, and so share this one loop body. It touches its
// own state and its links, and nothing of any other worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gyre/runtime/gradient_chain.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/runtime/reports.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/reduction_chains.h"

namespace gyre {

class Worker {
 public:
  // Publishes the first version of the segment to the replicas of the stages owned here. All arguments outlive it;
  // `numbers` are those of segment.schedule.
  Worker(WorkerState& state, const RuntimeOptions& options, const Segment& segment, const ReplicaNumbers& numbers,
         Transport& transport);

  // Performs the next action if everything it needs is there; MustWait only if nothing at all was done. On a device
  // that has streams, Done means handed to the worker's stream. RunError: a version differs from the schedule's
  // analysis.
  enum class Step { Done, MustWait, Finished };
  Step try_step();

  // What it is at, what that needs, and what has come; not whether it waits, nor how long. Any thread.
  WorkerStatus status() const;
  // On its own thread, when it must wait: for which other worker, or kNobody.
  int waits_for() const;

  int number() const { return state_.number; }

 private:
  // Of the first stage's weight that the last stage is tied to.
  struct TiedVersion {
    int64_t number = 0;
    at::Tensor weight;
    Lease lease;
  };
  using TiedReader = std::shared_ptr<const TiedVersion>;
  // What a forward reads besides weights.
  struct Input {
    at::Tensor tensor;
    LayerContext context;
    int64_t first_version = 0;  // that the pipeline's first stage read for the microbatch
  };
  // A microbatch between its forward and its backward at one stage.
  struct InFlight {
    int64_t version = 0;   // read by the forward, counted from the segment's start
    WeightReader stashed;  // with WeightPolicy::Stash
    TiedReader tied;       // at the last stage of a tied model
    StageSaved saved;
    at::Tensor loss;   // at the last stage; its value may come with the backward
    at::Tensor input;  // with recompute; then `saved` is empty until the backward
    LayerContext context;
  };
  // A replica's own gradient of a window, to which that of the tied weight is to be added.
  struct UntiedGradient {
    WindowGradient sum;
    double delay = 0;  // of the first microbatch
    bool decides = false;
  };
  // One replica during a segment.
  struct RunningReplica {
    Replica* replica = nullptr;
    ReplicaLinks* links = nullptr;
    std::vector<Shard> shards;  // of its stage
    std::optional<GradientChain> chain;
    std::vector<std::optional<Message>> arriving;  // [shard]: of the version that it takes next
    std::map<int64_t, InFlight> in_flight;         // by microbatch
    std::map<int64_t, int64_t> first_delay;        // of open windows: the delay of the first gradient in
    std::optional<Message> input;                  // that has come, and waits for the tied weight
    TiedReader tied;                               // at a last stage: what the newest forward read
    int64_t tied_sent = -1;                        // at a first stage: the newest version of which it was sent
    std::map<int64_t, UntiedGradient> untied;      // at a first stage, by window
    FinalReport::Replica seen;
  };
  // A chain's gradient of one window: the sum over its replicas' microbatches, lent by whoever computed it.
  struct ReducedGradient {
    std::vector<at::Tensor> sum;  // a flat tensor, or by parameter where the schedule's gradients stay whole
    int64_t delay = 0;            // of the first microbatch
    Lease lease;
  };
  // One owner during a segment, and the update that is being made ready.
  struct RunningOwner {
    StageOwner* owner = nullptr;
    OwnerLinks* links = nullptr;
    int64_t window = 0;  // that it updates next
    std::vector<std::optional<ReducedGradient>>
        gathered;                      // [pipeline] that sends; once all are there, the first has their sum
    std::vector<at::Tensor> gradient;  // that sum by parameter, once it is complete
    at::Tensor norms;                  // squared, of its tensors; undefined: it is not complete
    FinalReport::Owner seen;
  };

  // worker.cpp: the program.
  bool perform(const Action& action);
  bool forward(const Action& action);
  std::optional<Input> receive_input(const Action& action);
  void send_output(const Action& action, at::Tensor output, int64_t first_version);
  bool can_report_loss(const Action& action) const;
  void report_loss(const Action& action, at::Tensor loss);
  void keep(const Action& action, InFlight in_flight, Input input);
  bool backward(const Action& action);
  std::optional<at::Tensor> receive_grad_output(const Action& action);
  void backward_weights(const Action& action);
  void pass_on_gradients();
  void finish_gradient(const Action& action, const InFlight& microbatch);
  void send_tied_weight(RunningReplica& here);
  bool take_tied_weight(RunningReplica& here, int64_t number);
  bool add_tied_gradients(RunningReplica& here);
  bool adopt(const Action& action);
  bool has_first_version(RunningReplica& running);
  bool take_version(RunningReplica& running, int64_t number);
  int64_t checked_version(const Action& action, int64_t found);
  void account(const Action& action, std::chrono::steady_clock::time_point started, bool done);
  void heed_control();
  bool report_end();
  std::string needs(const Action& action) const;
  std::vector<int> owners_of(int stage) const;

  // worker_update.cpp: the updates of the stages owned here.
  bool update(const Action& action);
  void gather_gradients();
  bool gather_gradient(RunningOwner& running);
  void add_up(RunningOwner& running);
  at::Tensor gradient_norm(const Action& action);
  void sum_norms();
  void apply_update(const Action& action, const at::Tensor& norm);
  WeightReader read(StageOwner& owner) const;
  void publish(RunningOwner& running, int64_t number);

  bool is_last(const Action& action) const { return action.stage + 1 == schedule().stages; }
  RunningReplica& running(const Action& action) { return replicas_.at({action.pipeline, action.stage}); }
  int64_t version_of(const RunningReplica& running) const {
    return running.replica->weights->number - segment_.first_update;
  }
  const Schedule& schedule() const { return *segment_.schedule; }

  WorkerState& state_;
  const RuntimeOptions& options_;
  const Segment& segment_;
  WorkerLinks links_;
  ReductionChains chains_;
  // Where microbatches in flight hold the first stage's old versions anyway, the last stage reads the tied weight in
  // them; else it has a copy of that weight alone, so that they need not be held for it.
  bool lends_tied_;
  ProgramCursor cursor_;
  VersionTracker analysis_;
  std::optional<int64_t> expected_version_;  // of the action at the cursor, from the analysis
  std::optional<std::chrono::steady_clock::time_point>
      input_came_;                                          // of the action at the cursor, from another process
  std::map<std::pair<int, int>, RunningReplica> replicas_;  // by (pipeline, stage)
  std::map<int, RunningOwner> owners_;                      // by stage
  // Norms being summed: of each of links_.norm_sums, by window, as many as there are owners.
  std::vector<std::map<int64_t, std::vector<at::Tensor>>> norms_;
  int64_t admitted_ = 0;  // microbatches below this may have been taken in here
  bool holding_ = false;  // takes in nothing until the limit has come
  bool served_ = false;   // this step did something that others may wait for, besides the action
  bool ended_ = false;
  FinalReport seen_;

  // What status() describes.
  mutable std::mutex status_mutex_;
  std::optional<Action> next_;
  std::map<int, WorkerStatus::Delays> delays_;
};

}  // namespace gyre
