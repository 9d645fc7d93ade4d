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
  options.chunks = static_cast<int>(config.pipeline.chunks);
  options.pipelines = static_cast<int>(config.pipeline.pipelines);
  options.intake = static_cast<int>(config.pipeline.intake);
  options.tb_over_tf = config.pipeline.tb_over_tf;
  options.names = {"stages", "accumulate", "chunks", "pipelines", "intake", "tb_over_tf", "preload"};
  return options;
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
  // Two optimizers are defined by what their stages read.
  if (config.optimizer.kind == "prediction") return WeightPolicy::Predict;
  if (config.optimizer.kind == "pipemare") return WeightPolicy::Corrected;
  return schedule.weights;
}

}  // namespace gyre
