#include "gyre/runtime/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {

void check_clipping(ClipScope scope, const Schedule& schedule) {
  if (scope != ClipScope::Global || schedule.has_flush()) return;
  throw InputError(
      fmt::format("[optimizer] clip_scope = \"global\" needs a schedule with a flush (one that waits for each update), "
                  "and {} has none; use clip_scope = \"stage\"",
                  schedule.name));
}

Pipeline::Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges,
                   RuntimeOptions options, const OptimizerConfig& optimizer) {
  check_clipping(options.clip_scope, schedule);
  plan_ = std::make_unique<PipelinePlan>(std::move(schedule), layers, ranges, std::move(options), optimizer);
  use_threads(plan_->options.threads_per_worker);
  for (int worker = 0; worker < plan_->schedule.workers; ++worker) {
    workers_.push_back(std::make_unique<WorkerState>(worker, *plan_));
  }
}

StageOwner& Pipeline::owner(int stage) const {
  return workers_[static_cast<size_t>(schedule().owner[stage])]->owners.at(stage);
}

Replica& Pipeline::replica(int pipeline, int stage) const {
  return workers_[static_cast<size_t>(schedule().worker_of(pipeline, stage))]->replicas.at({pipeline, stage});
}

int64_t Pipeline::parameter_count() const {
  int64_t count = 0;
  for (int stage = 0; stage < schedule().stages; ++stage) count += owner(stage).layers.parameter_count();
  return count;
}

NamedTensors Pipeline::weights() const {
  NamedTensors all;
  for (int stage = 0; stage < schedule().stages; ++stage) {
    const WeightStore& store = owner(stage).weights;
    for (size_t i = 0; i < store.specs().size(); ++i) all[store.specs()[i].name] = store.masters()[i];
  }
  return all;
}

NamedTensors Pipeline::optimizer_state() const {
  NamedTensors all;
  for (int stage = 0; stage < schedule().stages; ++stage) all.merge(owner(stage).optimizer->state());
  return all;
}

void Pipeline::restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates) {
  for (const auto& worker : workers_) {
    for (auto& [place, replica] : worker->replicas) replica.weights.reset();
  }
  for (int stage = 0; stage < schedule().stages; ++stage) {
    StageOwner& restored = owner(stage);
    const auto& specs = restored.layers.parameters();
    for (const ParameterSpec& spec : specs) {
      const auto found = weights.find(spec.name);
      if (found == weights.end()) throw InputError(fmt::format("checkpoint has no weight '{}'", spec.name));
      if (found->second.sizes() != at::IntArrayRef(spec.shape)) {
        throw InputError(fmt::format("checkpoint: weight '{}' has shape ({}), the model has ({})", spec.name,
                                     fmt::join(found->second.sizes(), ", "), fmt::join(spec.shape, ", ")));
      }
    }
    const auto masters = restored.weights.begin_update();
    for (size_t i = 0; i < specs.size(); ++i) masters[i].copy_(weights.at(specs[i].name));
    restored.weights.restart(updates);
    if (!optimizer_state.empty() || updates > 0) restored.optimizer->load_state(optimizer_state);
  }
}

}  // namespace gyre
