// What persists between segments of a run: the plan, and the states of the workers and of the conductor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gyre/runtime/conductor.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

// InputError for global clipping under a schedule without a flush.
void check_clipping(ClipScope scope, const Schedule& schedule);

class Pipeline {
 public:
  // The calling thread's operations have options.threads_per_worker threads from then on. Initial weights are drawn
  // from options.seed. `ranges` has one entry per stage of `schedule`. Errors: InputError for combinations that cannot
  // be served (global clipping without a flush).
  Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
           const OptimizerConfig& optimizer);

  const Schedule& schedule() const { return plan_->schedule; }
  const RuntimeOptions& options() const { return plan_->options; }
  const PipelinePlan& plan() const { return *plan_; }
  ConductorState& conductor() { return conductor_; }
  WorkerState& worker(int number) { return *workers_[static_cast<size_t>(number)]; }
  // Between segments only.
  StageOwner& owner(int stage) const;
  Replica& replica(int pipeline, int stage) const;
  int64_t parameter_count() const;

  // Between segments only. fp32 masters by full name, and the optimizers' state: live tensors, not copies.
  NamedTensors weights() const;
  NamedTensors optimizer_state() const;
  // The pipeline continues as after `updates` updates. InputError names a weight that is missing or has another shape.
  void restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates);

 private:
  std::unique_ptr<const PipelinePlan> plan_;
  std::vector<std::unique_ptr<WorkerState>> workers_;  // [worker]
  ConductorState conductor_;
};

}  // namespace gyre
