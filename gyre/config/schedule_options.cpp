#include "gyre/config/schedule_options.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/schedule/load.h"

namespace gyre {

ScheduleOptions schedule_options(const Config& config) {
  ScheduleOptions options;
  options.name = config.pipeline.schedule;
  options.stages = static_cast<int>(config.pipeline.stages);
  options.window = config.pipeline.accumulate;
  options.replicas = static_cast<int>(config.pipeline.replicas);
  options.shard_optimizer = config.pipeline.shard_optimizer;
  options.by_stages = config.pipeline.worker_order == "stages";
  options.tb_over_tf = config.pipeline.tb_over_tf;
  options.tied = config.model.tie;
  options.clip_scope = clip_scope(config);
  options.own = config.pipeline.own.of_kind(options.name);
  options.names.window = "accumulate";
  return options;
}

ClipScope clip_scope(const Config& config) {
  return config.optimizer.clip == 0 ? ClipScope::None
                                    : parse_clip_scope(config.optimizer.clip_scope, "[optimizer] clip_scope");
}

Schedule build_schedule(const Config& config) {
  const ScheduleOptions options = schedule_options(config);
  try {
    return load_schedule(options, true);
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("[pipeline] (stages = {}, accumulate = {}): {}", options.stages, options.window, error.what()));
  }
}

WeightPolicy weight_policy(const Config& config, const Schedule& schedule) {
  if (const auto policy = parse_weight_policy(config.pipeline.weights)) return *policy;
  // "auto": some optimizers require a policy.
  return optimizer_kinds().at(config.optimizer.kind).weights.value_or(schedule.weights);
}

}  // namespace gyre
