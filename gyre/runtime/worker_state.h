// What a worker keeps between segments: the owners and replicas of the stages placed on it, and nothing of any other
// worker. Everything that it needs from others comes through links.
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
#include "gyre/runtime/stage_passes.h"
#include "gyre/runtime/weight_store.h"
#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// An owner: the only place of a stage's masters, versions and optimizer, or those of one shard of it.
struct StageOwner {
  StageOwner(Stage stage, const Shard& its, const RuntimeOptions& options, at::Device device,
             const ForecastOptions& forecast)
      : layers(std::move(stage)), shard(its), weights(parameters(), options.compute, device, forecast) {
    if (options.ema_decay > 0) average.emplace(parameters(), options.ema_decay, device);
  }

  // The parameters of the shard.
  std::vector<ParameterSpec> parameters() const {
    const auto its = shard.of(layers.parameters());
    return {its.begin(), its.end()};
  }

  Stage layers;
  Shard shard;
  WeightStore weights;
  std::optional<WeightAverage> average;  // only if ema_decay is set
  std::unique_ptr<Optimizer> optimizer;  // null if there are only evaluations
  MeanDelays mean_delay;
};

// A stage as run by one pipeline.
struct Replica {
  // recompute: see StagePasses.
  Replica(Stage layers, at::Device device, GradientWindows::Layout layout, std::optional<size_t> its_shared,
          std::optional<HeldMicrobatches> recompute)
      : layers(std::move(layers)),
        passes(this->layers, recompute),
        gradients(this->layers.parameters(), device, layout, this->layers.tied()),
        shared(its_shared) {}

  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  Stage layers;
  StagePasses passes;
  WeightReader weights;  // the current version; null until the segment's first has come
  GradientWindows gradients;
  std::optional<size_t> shared;  // index of its parameter that the last stage is tied to
};

// [stage]: mean delays of a full pipeline, by the schedule's analysis.
std::vector<MeanDelays> mean_delays_by_stage(const Schedule& schedule);

// What all workers' states are made from. It is never changed.
struct PipelinePlan {
  // `layers`: the model's; `ranges`: [stage] which of them the stage has.
  PipelinePlan(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
               std::optional<OptimizerConfig> optimizer);

  Schedule schedule;
  RuntimeOptions options;
  std::optional<OptimizerConfig> optimizer;     // none: there are only evaluations
  std::vector<Stage> stages;                    // [stage]
  std::vector<std::vector<Shard>> shards;       // [stage][shard]
  std::vector<ForecastOptions> forecasts;       // [stage]
  std::vector<MeanDelays> mean_delays;          // [stage]
  std::vector<std::vector<int64_t>> in_flight;  // [pipeline][stage]: as most_in_flight() says of the schedule
  // [stage]: see StagePasses.
  std::vector<std::optional<HeldMicrobatches>> recompute;
  std::optional<size_t> shared;  // index of the first stage's parameter that the last stage is tied to
};

struct WorkerState {
  // Initial weights are drawn from the plan's seed. The calling thread's operations must use options.threads_per_worker
  // threads: bases begin with decompositions, whose bits depend on that number.
  WorkerState(int number, const PipelinePlan& plan);

  int number;
  at::Device device;
  std::optional<c10::Stream> stream;                // the stream its work goes to; null on the CPU
  std::map<int, StageOwner> owners;                 // by stage; a worker owns at most one shard of a stage
  std::map<std::pair<int, int>, Replica> replicas;  // by (pipeline, stage)

 private:
  void add_owner(int stage, int shard, const PipelinePlan& plan);
};

}  // namespace gyre
