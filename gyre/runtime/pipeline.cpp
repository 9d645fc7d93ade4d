#include "gyre/runtime/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/runtime/pipeline_checks.h"
#include "gyre/schedule/clip_scope.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {

Pipeline::Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges,
                   RuntimeOptions options, std::optional<OptimizerConfig> optimizer, WorkerRange here) {
  check_ranges(schedule, layers, ranges);
  check_parameters(layers);
  check_options(options, schedule, optimizer.has_value());
  check_clipping(schedule);
  plan_ = std::make_unique<PipelinePlan>(std::move(schedule), layers, ranges, std::move(options), std::move(optimizer));
  use_threads(plan_->options.threads_per_worker);
  for (int worker = 0; worker < plan_->schedule.workers; ++worker) {
    if (here.contains(worker)) workers_.emplace(worker, std::make_unique<WorkerState>(worker, *plan_));
  }
}

StageOwner& Pipeline::owner(int stage, int shard) const {
  return workers_.at(schedule().owner[shard][stage])->owners.at(stage);
}

// In shard order.
std::vector<StageOwner*> Pipeline::owners_here(int stage) const {
  std::vector<StageOwner*> owners;
  for (int shard = 0; shard < schedule().shards(); ++shard) {
    if (owns(stage, shard)) owners.push_back(&owner(stage, shard));
  }
  return owners;
}

Replica& Pipeline::replica(int pipeline, int stage) const {
  return workers_.at(schedule().worker_of(pipeline, stage))->replicas.at({pipeline, stage});
}

int64_t Pipeline::parameter_count() const {
  int64_t count = 0;
  for (const Stage& stage : plan_->stages) count += stage.parameter_count();
  return count;
}

NamedTensors Pipeline::weights() const {
  NamedTensors all;
  for (int stage = 0; stage < schedule().stages; ++stage) {
    for (const StageOwner* owner : owners_here(stage)) {
      const auto& specs = owner->weights.specs();
      for (size_t i = 0; i < specs.size(); ++i) all[specs[i].name] = owner->weights.master(i);
    }
  }
  return all;
}

NamedTensors Pipeline::optimizer_state(int stage) const {
  NamedTensors state;
  for (const StageOwner* owner : owners_here(stage)) {
    if (owner->optimizer) state.merge(owner->optimizer->state());
    if (owner->average) state.merge(owner->average->state());
  }
  return state;
}

NamedTensors Pipeline::optimizer_state() const {
  NamedTensors all;
  for (int stage = 0; stage < schedule().stages; ++stage) all.merge(optimizer_state(stage));
  return all;
}

std::vector<ParameterSpec> Pipeline::parameters_here() const {
  std::vector<ParameterSpec> parameters;
  for (int stage = 0; stage < schedule().stages; ++stage) {
    for (const StageOwner* owner : owners_here(stage)) {
      const auto& specs = owner->weights.specs();
      parameters.insert(parameters.end(), specs.begin(), specs.end());
    }
  }
  return parameters;
}

namespace {

void restore_weights(StageOwner& owner, const NamedTensors& weights, int64_t updates) {
  const auto& specs = owner.weights.specs();
  for (const ParameterSpec& spec : specs) {
    const auto found = weights.find(spec.name);
    if (found == weights.end()) throw InputError(fmt::format("checkpoint has no weight '{}'", spec.name));
    if (found->second.sizes() != at::IntArrayRef(spec.shape)) {
      throw InputError(fmt::format("checkpoint: weight '{}' has shape ({}), the model has ({})", spec.name,
                                   fmt::join(found->second.sizes(), ", "), fmt::join(spec.shape, ", ")));
    }
  }
  owner.weights.restart(updates, [&](size_t i) { return weights.at(specs[i].name); });
}

}  // namespace

void Pipeline::restore_optimizer(StageOwner& owner, at::Device device, const NamedTensors& state,
                                 int64_t updates) const {
  if (!state.empty() || updates > 0) return owner.optimizer->load_state(state);
  if (!plan_->optimizer) return;  // it was put there by hand
  owner.optimizer.reset();        // its memory is free for the new one
  owner.optimizer = make_optimizer(*plan_->optimizer, owner.weights.specs(), device);
}

void Pipeline::restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates) {
  for (const auto& [number, worker] : workers_) {
    for (auto& [place, replica] : worker->replicas) replica.weights.reset();
  }
  for (const auto& [number, worker] : workers_) {
    for (auto& [stage, owner] : worker->owners) {
      restore_weights(owner, weights, updates);
      if (owner.optimizer) restore_optimizer(owner, worker->device, optimizer_state, updates);
      if (!owner.average) continue;
      owner.average->restart([&owner = owner](size_t i) { return owner.weights.master(i); }, optimizer_state);
    }
  }
}

}  // namespace gyre
