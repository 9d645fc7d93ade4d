// What persists between segments of a run: the plan, and the states of the conductor and of the workers that are in
// this process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "gyre/runtime/conductor.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

// InputError for global clipping under a schedule without a flush.
void check_clipping(ClipScope scope, const Schedule& schedule);

// Workers begin <= number < end.
struct WorkerRange {
  int begin = 0, end = std::numeric_limits<int>::max();
  bool contains(int worker) const { return begin <= worker && worker < end; }
};

class Pipeline {
 public:
  // The calling thread's operations have options.threads_per_worker threads from then on. Initial weights are drawn
  // from options.seed. `ranges` has one entry per stage of `schedule`. Errors: InputError for combinations that cannot
  // be served (global clipping without a flush). Workers that are not `here` are another process's.
  Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
           const OptimizerConfig& optimizer, WorkerRange here = {});

  const Schedule& schedule() const { return plan_->schedule; }
  const RuntimeOptions& options() const { return plan_->options; }
  const PipelinePlan& plan() const { return *plan_; }
  ConductorState& conductor() { return conductor_; }
  // By number: those that are here, and no other.
  const std::map<int, std::unique_ptr<WorkerState>>& workers() const { return workers_; }
  bool owns(int stage, int shard) const { return workers_.count(schedule().owner[shard][stage]) > 0; }
  // Between segments only, of what is owned here.
  StageOwner& owner(int stage, int shard = 0) const;
  Replica& replica(int pipeline, int stage) const;
  int64_t parameter_count() const;

  // Between segments only: what is saved of all that is owned here. fp32 masters by full name: live tensors where there
  // are any, else made anew. Live tensors of optimizers' states, and of the averages of weights where there are any.
  NamedTensors weights() const;
  NamedTensors optimizer_state() const;
  // The same of the shards of one stage.
  NamedTensors optimizer_state(int stage) const;
  // The parameters that these are of.
  std::vector<ParameterSpec> parameters_here() const;
  // What is owned here continues as after `updates` updates. InputError names a weight that is missing or
  // has another shape. Averages that are not in the state begin with the weights.
  void restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates);

 private:
  std::vector<StageOwner*> owners_here(int stage) const;

  std::unique_ptr<const PipelinePlan> plan_;
  std::map<int, std::unique_ptr<WorkerState>> workers_;
  ConductorState conductor_;
};

}  // namespace gyre
