#include "gyre/inspect/window_pipeline.h"

#include <ATen/ATen.h>

#include <utility>

#include "gyre/build/build.h"
#include "gyre/config/schedule_options.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

RuntimeOptions exact(RuntimeOptions options) {
  options.compute = at::kFloat;
  options.weights = WeightPolicy::Stash;
  options.recompute = false;
  options.ema_decay = 0;
  options.max_skipped = 0;  // a gradient that is not finite cannot be measured: an error
  return options;
}

Pipeline make_pipeline(const Config& config, RuntimeOptions options, std::optional<OptimizerConfig> optimizer) {
  const Layers layers = build_layers(config);
  Schedule schedule = build_one_window(static_cast<int>(config.pipeline.stages), config.pipeline.accumulate);
  schedule.global_norm = build_schedule(config).global_norm;  // clips as the run does
  const auto ranges = build_partition(config, schedule, layers);
  return Pipeline(std::move(schedule), layers, ranges, exact(std::move(options)), std::move(optimizer));
}

struct NoObserver final : SegmentObserver {
  void on_loss(int64_t, double) override {}
  void on_update(int, int64_t, const std::vector<double>&) override {}
};

}  // namespace

WindowPipeline::WindowPipeline(const Config& config, const BatchSource& batches, RuntimeOptions options,
                               std::optional<OptimizerConfig> optimizer)
    : pipeline_(make_pipeline(config, std::move(options), std::move(optimizer))),
      executor_(make_executor(config.pipeline.executor)),
      batches_(batches) {}

void WindowPipeline::replace_optimizers(const Replace& made) {
  for (int stage = 0; stage < stages(); ++stage) {
    auto& optimizer = pipeline_.owner(stage).optimizer;
    optimizer = made(stage, std::move(optimizer));
  }
}

void WindowPipeline::set_weights(int stage, std::span<const at::Tensor> weights) {
  pipeline_.replica(0, stage).weights.reset();  // those of the last window, which nobody reads any more
  WeightStore& store = pipeline_.owner(stage).weights;
  store.restart(store.version(), [&](size_t i) { return weights[i]; });
}

void WindowPipeline::run(int64_t first, int64_t count, int64_t update) {
  Schedule schedule = build_one_window(stages(), count);
  schedule.tied = pipeline_.schedule().tied;
  schedule.global_norm = pipeline_.schedule().global_norm;
  for (int stage = 0; stage < stages(); ++stage) pipeline_.owner(stage).weights.restart(update - 1);
  Segment segment;
  segment.schedule = &schedule;
  segment.batches = &batches_;
  segment.first_microbatch = first;
  segment.first_update = update - 1;
  segment.microbatches = count;
  NoObserver nobody;
  executor_->run(pipeline_, segment, nobody);
}

}  // namespace gyre
