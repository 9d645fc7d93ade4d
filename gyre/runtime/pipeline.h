// What persists between segments of a run: the plan, and the states of the conductor and of this process's workers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gyre/runtime/conductor.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

// The workers with begin <= number < end.
struct WorkerRange {
  int begin = 0, end = std::numeric_limits<int>::max();
  bool contains(int worker) const { return begin <= worker && worker < end; }
};

class Pipeline {
 public:
  // From then on, operations of the calling thread use options.threads_per_worker threads. Initial weights are drawn
  // from options.seed. `ranges` has one entry per stage of `schedule`. Workers outside `here` belong to other
  // processes. Without `optimizer` it can only be evaluated. Throws InputError for ranges that do not cover the layers,
  // two parameters of one name, options that cannot be, and what check_clipping() refuses.
  Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
           std::optional<OptimizerConfig> optimizer, WorkerRange here = {});

  const Schedule& schedule() const { return plan_->schedule; }
  const RuntimeOptions& options() const { return plan_->options; }
  const PipelinePlan& plan() const { return *plan_; }
  ConductorState& conductor() { return conductor_; }
  // By number; only those of this process.
  const std::map<int, std::unique_ptr<WorkerState>>& workers() const { return workers_; }
  bool owns(int stage, int shard) const { return workers_.count(schedule().owner[shard][stage]) > 0; }
  // Between segments only, and only for what is owned in this process.
  StageOwner& owner(int stage, int shard = 0) const;
  Replica& replica(int pipeline, int stage) const;
  int64_t parameter_count() const;

  // Between segments only: the state to save, of all that is owned in this process. weights() returns fp32 masters by
  // full name: live tensors where the masters exist as such, otherwise new ones. optimizer_state() returns the live
  // tensors of the optimizers' states, and of the averages of weights if there are any.
  NamedTensors weights() const;
  NamedTensors optimizer_state() const;
  // The same for the shards of one stage.
  NamedTensors optimizer_state(int stage) const;
  // The parameters that weights() and optimizer_state() cover.
  std::vector<ParameterSpec> parameters_here() const;
  // Sets what is owned in this process to the state after `updates` updates. Throws InputError, with its name, for a
  // weight that is missing or has another shape; the pipeline must not be used then. Averages missing from the state
  // start from the weights. No state of the optimizer after 0 updates is that of a new one.
  void restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates);

 private:
  std::vector<StageOwner*> owners_here(int stage) const;
  void restore_optimizer(StageOwner& owner, at::Device device, const NamedTensors& state, int64_t updates) const;

  std::unique_ptr<const PipelinePlan> plan_;
  std::map<int, std::unique_ptr<WorkerState>> workers_;
  ConductorState conductor_;
};

}  // namespace gyre
