// What a worker keeps between segments: the owners and replicas of the stages placed on it, and nothing of any other
// worker. All that it needs of others comes through links.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gyre/model/stage.h"
#include "gyre/optim/config.h"
#include "gyre/optim/weight_average.h"
#include "gyre/runtime/gradient_windows.h"
#include "gyre/runtime/runtime_options.h"
#include "gyre/runtime/shards.h"
#include "gyre/runtime/weight_store.h"
#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// An owner: the one place of masters, versions and optimizer of a stage, or of one shard of it.
struct StageOwner {
  StageOwner(Stage stage, const Shard& its, const RuntimeOptions& options, at::Device device,
             const ForecastOptions& forecast)
      : layers(std::move(stage)), shard(its), weights(parameters(), options.compute, device, forecast) {
    if (options.ema_decay > 0) average.emplace(parameters(), options.ema_decay, device);
  }

  // Those of the shard.
  std::vector<ParameterSpec> parameters() const {
    const auto its = shard.of(layers.parameters());
    return {its.begin(), its.end()};
  }

  Stage layers;
  Shard shard;
  WeightStore weights;
  std::optional<WeightAverage> average;  // none unless it is asked for
  std::unique_ptr<Optimizer> optimizer;
  MeanDelays mean_delay;
};

// A stage as one pipeline runs it.
struct Replica {
  Replica(Stage layers, at::Device device, GradientWindows::Layout layout, std::optional<size_t> its_shared)
      : layers(std::move(layers)),
        gradients(this->layers.parameters(), device, layout, this->layers.tied()),
        shared(its_shared) {}

  Stage layers;
  WeightReader weights;  // the version it has now; none before a segment's first has come
  GradientWindows gradients;
  std::optional<size_t> shared;  // its parameter that the last stage is tied to
};

// [stage]: what the schedule's analysis says of a full pipeline.
std::vector<MeanDelays> mean_delays_by_stage(const Schedule& schedule);

// What all workers' states are made of. Nothing here changes after it is made.
struct PipelinePlan {
  // `layers` are the model's, `ranges` [stage] says which are whose.
  PipelinePlan(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
               OptimizerConfig optimizer);

  Schedule schedule;
  RuntimeOptions options;
  OptimizerConfig optimizer;
  std::vector<Stage> stages;               // [stage]
  std::vector<std::vector<Shard>> shards;  // [stage][shard]
  std::vector<ForecastOptions> forecasts;  // [stage]
  std::vector<MeanDelays> mean_delays;     // [stage]
  std::optional<size_t> shared;            // parameter of the first stage that the last one is tied to
};

struct WorkerState {
  // Initial weights are drawn from the plan's seed. The calling thread's operations must have
  // options.threads_per_worker threads: bases begin with decompositions, whose bits depend on them.
  WorkerState(int number, const PipelinePlan& plan);

  int number;
  at::Device device;
  std::optional<c10::Stream> stream;                // that its work goes to; null on the CPU
  std::map<int, StageOwner> owners;                 // by stage; a worker has one shard of it
  std::map<std::pair<int, int>, Replica> replicas;  // by (pipeline, stage)

 private:
  void add_owner(int stage, int shard, const PipelinePlan& plan);
};

}  // namespace gyre
