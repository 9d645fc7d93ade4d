// A replica of a stage while a segment runs: the forwards and backwards of its microbatches, the versions they read,
// and the gradients of its windows on their way to the owners. Nothing here blocks: a function returns false if
// something that the action needs has not come, and is called again later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gyre/runtime/gradient_chain.h"
#include "gyre/runtime/reports.h"
#include "gyre/runtime/tied_weight.h"
#include "gyre/runtime/worker_context.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

class RunningReplica {
 public:
  // shards: of its stage. All arguments must outlive it.
  RunningReplica(int stage, Replica& replica, const ReplicaLinks& links, const std::vector<Shard>& shards,
                 WorkerContext& worker);

  bool forward(const Action& action);
  // B, or its input half I.
  bool backward(const Action& action);
  void backward_weights(const Action& action);
  // The replica's weights become the version that the window's update makes.
  bool adopt(const Action& action);

  // Adds sums that are complete here to those that have come, and passes them on: later replicas of the chain wait for
  // them.
  void pass_on_gradients();
  bool has_passed_on_all() const { return tied_source_.idle() && chain_.idle(); }

  bool has_output_room() const { return links_.outputs->has_room(); }
  bool has_weights() const { return replica_.weights != nullptr; }
  // Whether the next forward's input has come.
  bool has_input() const { return input_.has_value(); }
  const FinalReport::Replica& seen() const { return seen_; }

 private:
  // What a forward reads besides weights.
  struct Input {
    at::Tensor tensor;
    LayerContext context;
    int64_t first_version = 0;  // version that the pipeline's first stage read for the microbatch
  };
  // A microbatch between its forward and its backward.
  struct InFlight {
    int64_t version = 0;   // read by the forward, counted from the segment's start
    WeightReader stashed;  // with WeightPolicy::Stash
    TiedReader tied;       // at the last stage of a tied model
    StagePasses::Kept kept;
  };
  std::optional<Input> receive_input(const Action& action);
  LayerContext layer_context(const Action& action) const;
  void send_output(const Action& action, at::Tensor output, int64_t first_version);
  void save_for_backward(const Action& action, InFlight in_flight);
  std::optional<at::Tensor> receive_grad_output(const Action& action);
  void report_loss(const Action& action, at::Tensor loss);

  void finish_gradient(const Action& action, const InFlight& microbatch);
  void count_delay(int64_t delay);

  bool take_first_version();
  bool take_version(int64_t number);
  bool take_tied_weight(int64_t number);

  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == schedule().stages; }
  const Schedule& schedule() const { return worker_.schedule(); }
  // The version of the current weights, counted from the segment's start.
  int64_t version() const { return replica_.weights->number - worker_.segment.first_update; }

  int stage_;
  Replica& replica_;
  const ReplicaLinks& links_;
  WorkerContext& worker_;
  const std::vector<Shard>& shards_;
  GradientChain chain_;
  std::map<int64_t, InFlight> in_flight_;         // by microbatch
  std::map<int64_t, int64_t> first_delay_;        // by open window: the delay of its first gradient
  std::optional<Message> input_;                  // has come, and waits for the tied weight
  std::vector<std::optional<Message>> arriving_;  // [shard]: of the version taken next
  FinalReport::Replica seen_;

  TiedWeightSource tied_source_;
  TiedReader tied_;  // at a last stage: what the newest forward read
};

}  // namespace gyre
