#include "gyre/runtime/pipeline.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/error.h"

namespace gyre {

Replica::Replica(int pipeline, int stage, Stage stage_layers, at::ScalarType compute)
    : pipeline(pipeline),
      stage(stage),
      layers(std::move(stage_layers)),
      weights(layers.parameters(), compute, at::kCPU),
      gradients(layers.parameters(), at::kCPU) {}

Pipeline::Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges,
                   RuntimeOptions options, const OptimizerConfig& optimizer)
    : schedule_(std::move(schedule)), options_(std::move(options)) {
  if (schedule_.pipelines != 1) {
    throw InputError(
        fmt::format("schedule {}: {} pipelines, and this version executes one; use a schedule with one pipeline",
                    schedule_.name, schedule_.pipelines));
  }
  if (options_.clip_scope == ClipScope::Global && !schedule_.has_flush()) {
    throw InputError(
        fmt::format("[optimizer] clip_scope = \"global\" needs a schedule with a flush (gpipe, 1f1b), and {} has "
                    "none; use clip_scope = \"stage\"",
                    schedule_.name));
  }
  for (int stage = 0; stage < schedule_.stages; ++stage) {
    const LayerRange range = ranges[stage];
    auto replica = std::make_unique<Replica>(
        0, stage, Stage(Layers(layers.begin() + range.begin, layers.begin() + range.end), range.begin),
        options_.compute);
    const auto& specs = replica->layers.parameters();
    const auto masters = replica->weights.begin_update();
    for (size_t i = 0; i < specs.size(); ++i) masters[i].copy_(initial_value(specs[i], options_.seed));
    replica->weights.restart(0);
    replica->optimizer = make_optimizer(optimizer, specs);
    replicas_.push_back(std::move(replica));
  }
}

int64_t Pipeline::parameter_count() const {
  int64_t count = 0;
  for (const auto& replica : replicas_) count += replica->layers.parameter_count();
  return count;
}

NamedTensors Pipeline::weights() const {
  NamedTensors all;
  for (const auto& replica : replicas_) {
    const auto& specs = replica->layers.parameters();
    for (size_t i = 0; i < specs.size(); ++i) all[specs[i].name] = replica->weights.masters()[i];
  }
  return all;
}

NamedTensors Pipeline::optimizer_state() const {
  NamedTensors all;
  for (const auto& replica : replicas_) all.merge(replica->optimizer->state());
  return all;
}

void Pipeline::restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates) {
  for (const auto& replica : replicas_) {
    const auto& specs = replica->layers.parameters();
    for (const ParameterSpec& spec : specs) {
      const auto found = weights.find(spec.name);
      if (found == weights.end()) throw InputError(fmt::format("checkpoint has no weight '{}'", spec.name));
      if (found->second.sizes() != at::IntArrayRef(spec.shape)) {
        throw InputError(fmt::format("checkpoint: weight '{}' has shape ({}), the model has ({})", spec.name,
                                     fmt::join(found->second.sizes(), ", "), fmt::join(spec.shape, ", ")));
      }
    }
    const auto masters = replica->weights.begin_update();
    for (size_t i = 0; i < specs.size(); ++i) masters[i].copy_(weights.at(specs[i].name));
    replica->weights.restart(updates);
    if (!optimizer_state.empty() || updates > 0) replica->optimizer->load_state(optimizer_state);
  }
}

}  // namespace gyre
