#include "gyre/runtime/worker_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

std::vector<ForecastOptions> forecasts_by_stage(const Schedule& schedule, const RuntimeOptions& options) {
  std::vector<ForecastOptions> result;
  for (const int64_t steps : forecast_steps(schedule, options.weights)) {
    result.push_back({options.weights, steps, options.discrepancy});
  }
  return result;
}

// The parameter's index among the stage's. Throws InputError if the stage does not have it.
size_t place_of(const std::string& name, const Stage& stage) {
  const auto& specs = stage.parameters();
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return spec.name == name; });
  if (found == specs.end()) throw InputError("the last stage is tied to '" + name + "', which the first has not");
  return static_cast<size_t>(found - specs.begin());
}

}  // namespace

std::vector<MeanDelays> mean_delays_by_stage(const Schedule& schedule) {
  std::vector<MeanDelays> result;
  double sum = 0;
  for (const double delay : mean_delays(schedule)) {
    result.push_back({delay, 0});
    sum += delay;
  }
  for (MeanDelays& delays : result) delays.all_stages = sum / schedule.stages;
  return result;
}

PipelinePlan::PipelinePlan(Schedule s, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions o,
                           std::optional<OptimizerConfig> config)
    : schedule(std::move(s)),
      options(std::move(o)),
      optimizer(std::move(config)),
      forecasts(forecasts_by_stage(schedule, options)),
      mean_delays(mean_delays_by_stage(schedule)),
      in_flight(most_in_flight(schedule)) {
  for (at::Device& device : options.devices) device = find_device(device);
  recompute.resize(static_cast<size_t>(schedule.stages));
  if (options.recompute) std::ranges::copy(held_microbatches(schedule), recompute.begin());
  for (const LayerRange& range : ranges) {
    stages.emplace_back(Layers(layers.begin() + range.begin, layers.begin() + range.end), range.begin);
    shards.push_back(cut_into_shards(stages.back().parameters(), schedule.shards()));
  }
  if (const auto& tied = stages.back().tied()) shared = place_of(tied->spec.name, stages.front());
  schedule.tied = shared.has_value();
}

void WorkerState::add_owner(int stage, int shard, const PipelinePlan& plan) {
  StageOwner& owner = owners
                          .try_emplace(stage, plan.stages[stage], plan.shards[stage][shard], plan.options, device,
                                       plan.forecasts[stage])
                          .first->second;
  const auto& specs = owner.weights.specs();
  owner.weights.restart(0, [&](size_t i) { return initial_value(specs[i], plan.options.seed); });
  if (owner.average) owner.average->restart([&](size_t i) { return owner.weights.master(i); });
  if (plan.optimizer) owner.optimizer = make_optimizer(*plan.optimizer, specs, device);
  owner.mean_delay = plan.mean_delays[stage];
}

WorkerState::WorkerState(int worker, const PipelinePlan& plan)
    : number(worker), device(plan.options.device_of(worker)), stream(make_stream(device)) {
  const auto layout =
      plan.schedule.gradients_stay_whole() ? GradientWindows::Layout::Whole : GradientWindows::Layout::Flat;
  for (int stage = 0; stage < plan.schedule.stages; ++stage) {
    for (int pipeline = 0; pipeline < plan.schedule.pipelines; ++pipeline) {
      if (plan.schedule.worker_of(pipeline, stage) != number) continue;
      replicas.try_emplace({pipeline, stage}, plan.stages[stage], device, layout,
                           stage == 0 ? plan.shared : std::nullopt, plan.recompute[stage]);
    }
    for (int shard = 0; shard < plan.schedule.shards(); ++shard) {
      if (plan.schedule.owner[shard][stage] == number) add_owner(stage, shard, plan);
    }
  }
}

}  // namespace gyre
