#include "gyre/runtime/pipeline.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/delay.h"

namespace gyre {

StageOwner::StageOwner(Stage stage_layers, at::ScalarType compute, bool shared, const ForecastOptions& forecast)
    : layers(std::move(stage_layers)), weights(layers.parameters(), compute, at::kCPU, shared, forecast) {}

Replica::Replica(StageOwner& stage_owner) : owner(stage_owner), gradients(stage_owner.layers.parameters(), at::kCPU) {}

namespace {

// How far each stage's forecasts go: its longest delay or mismatch once the pipeline is full.
std::vector<ForecastOptions> forecasts(const Schedule& schedule, const RuntimeOptions& options) {
  std::vector<ForecastOptions> result(schedule.stages, {options.weights, 0, options.discrepancy});
  const bool ahead = options.weights == WeightPolicy::Predict;
  if (!ahead && options.weights != WeightPolicy::Corrected) return result;
  const LongestDelays longest = longest_delays(schedule);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    result[stage].steps = (ahead ? longest.delay : longest.mismatch)[stage];
  }
  return result;
}

std::vector<MeanDelays> mean_delays_by_stage(const Schedule& schedule) {
  std::vector<MeanDelays> result;
  double sum = 0;
  for (const double delay : mean_delays(schedule)) {
    result.push_back({delay, 0});
    sum += delay;
  }
  for (MeanDelays& delays : result) delays.pipeline = sum / schedule.stages;
  return result;
}

}  // namespace

Pipeline::Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges,
                   RuntimeOptions options, const OptimizerConfig& optimizer)
    : schedule_(std::move(schedule)), options_(std::move(options)) {
  if (options_.clip_scope == ClipScope::Global && !schedule_.has_flush()) {
    throw InputError(
        fmt::format("[optimizer] clip_scope = \"global\" needs a schedule with a flush (gpipe, 1f1b, ...), and {} has "
                    "none; use clip_scope = \"stage\"",
                    schedule_.name));
  }
  // Bases begin with decompositions, whose bits depend on the number of threads too.
  at::set_num_threads(options_.threads_per_worker);
  const bool shared = schedule_.pipelines > 1;
  const auto forecast = forecasts(schedule_, options_);
  const auto mean_delay = mean_delays_by_stage(schedule_);
  for (int stage = 0; stage < schedule_.stages; ++stage) {
    const LayerRange range = ranges[stage];
    auto owner = std::make_unique<StageOwner>(
        Stage(Layers(layers.begin() + range.begin, layers.begin() + range.end), range.begin), options_.compute, shared,
        forecast[stage]);
    const auto& specs = owner->layers.parameters();
    const auto masters = owner->weights.begin_update();
    for (size_t i = 0; i < specs.size(); ++i) masters[i].copy_(initial_value(specs[i], options_.seed));
    owner->weights.restart(0);
    owner->optimizer = make_optimizer(optimizer, specs);
    owner->mean_delay = mean_delay[stage];
    owners_.push_back(std::move(owner));
  }
  for (int pipeline = 0; pipeline < schedule_.pipelines; ++pipeline) {
    for (int stage = 0; stage < schedule_.stages; ++stage)
      replicas_.push_back(std::make_unique<Replica>(*owners_[stage]));
  }
  synchronise_replicas();
}

void Pipeline::begin_segment() {
  for (const auto& owner : owners_) owner->weights.begin_segment();
  synchronise_replicas();
}

void Pipeline::synchronise_replicas() {
  for (const auto& replica : replicas_) replica->weights = replica->owner.weights.read();
}

int64_t Pipeline::parameter_count() const {
  int64_t count = 0;
  for (const auto& owner : owners_) count += owner->layers.parameter_count();
  return count;
}

NamedTensors Pipeline::weights() const {
  NamedTensors all;
  for (const auto& owner : owners_) {
    const auto& specs = owner->layers.parameters();
    for (size_t i = 0; i < specs.size(); ++i) all[specs[i].name] = owner->weights.masters()[i];
  }
  return all;
}

NamedTensors Pipeline::optimizer_state() const {
  NamedTensors all;
  for (const auto& owner : owners_) all.merge(owner->optimizer->state());
  return all;
}

void Pipeline::restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates) {
  for (const auto& replica : replicas_) replica->weights.reset();
  for (const auto& owner : owners_) {
    const auto& specs = owner->layers.parameters();
    for (const ParameterSpec& spec : specs) {
      const auto found = weights.find(spec.name);
      if (found == weights.end()) throw InputError(fmt::format("checkpoint has no weight '{}'", spec.name));
      if (found->second.sizes() != at::IntArrayRef(spec.shape)) {
        throw InputError(fmt::format("checkpoint: weight '{}' has shape ({}), the model has ({})", spec.name,
                                     fmt::join(found->second.sizes(), ", "), fmt::join(spec.shape, ", ")));
      }
    }
    const auto masters = owner->weights.begin_update();
    for (size_t i = 0; i < specs.size(); ++i) masters[i].copy_(weights.at(specs[i].name));
    owner->weights.restart(updates);
    if (!optimizer_state.empty() || updates > 0) owner->optimizer->load_state(optimizer_state);
  }
  synchronise_replicas();
}

}  // namespace gyre
