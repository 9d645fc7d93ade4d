#include "gyre/build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gyre/build/model_maker.h"
#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/optim/learning_rate.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

int64_t special_tokens(const ModelSettings& model) {
  const ModelKind& kind = model_kinds().at(model.kind);
  return kind.special_tokens == nullptr ? 0 : kind.special_tokens(model);
}

std::unique_ptr<Pipeline> make_pipeline(const Config& config, Schedule schedule, RuntimeOptions options,
                                        std::optional<OptimizerConfig> optimizer, WorkerRange here,
                                        HostProcess process) {
  const Layers layers = build_layers(config);
  const auto ranges = build_partition(config, schedule, layers);
  options.devices = worker_devices(config, schedule.workers, here, process);
  if (!options.devices.empty()) use_deterministic_functions();
  return std::make_unique<Pipeline>(std::move(schedule), layers, ranges, std::move(options), std::move(optimizer),
                                    here);
}

}  // namespace

RuntimeOptions runtime_options(const Config& config, const Schedule& schedule) {
  const LearningRateSchedule rate{.peak = config.optimizer.lr,
                                  .warmup = config.optimizer.warmup,
                                  .total = config.run.updates,
                                  .decay = config.optimizer.decay,
                                  .floor = config.optimizer.floor,
                                  .cooldown = config.optimizer.cooldown,
                                  .cooldown_shape = config.optimizer.cooldown_shape};

  RuntimeOptions options;
  options.compute = compute_type(config);
  options.weights = weight_policy(config, schedule);
  options.discrepancy = config.optimizer.discrepancy;
  options.recompute = config.pipeline.recompute;
  options.clip = clip_scope(config) == ClipScope::None ? 0 : config.optimizer.clip;
  options.max_skipped = config.optimizer.max_skipped;
  options.ema_decay = config.optimizer.ema_decay;
  options.learning_rate = [rate](int64_t update) { return rate.at(update); };
  options.seed = static_cast<uint64_t>(config.run.seed);
  options.threads_per_worker = threads_per_worker(config);
  options.pin_workers = config.pipeline.pin_workers;
  options.stall_seconds = config.pipeline.stall_seconds;
  return options;
}

at::ScalarType compute_type(const Config& config) {
  return config.run.precision == "bf16" ? at::kBFloat16 : at::kFloat;
}

int threads_per_worker(const Config& config) {
  const int64_t cores = usable_core_count();
  if (config.pipeline.threads_per_worker > cores) {
    throw InputError(fmt::format("[pipeline] threads_per_worker is {}, and this machine has {}; give 1 to {}",
                                 config.pipeline.threads_per_worker, counted(cores, "core"), cores));
  }
  return static_cast<int>(config.pipeline.threads_per_worker);
}

OptimizerConfig optimizer_config(const Config& config) {
  const OptimizerKind& kind = optimizer_kinds().at(config.optimizer.kind);
  OptimizerConfig optimizer{adam_settings(config.optimizer)};
  optimizer.kind = kind.name;
  optimizer.delay_warmup = config.optimizer.delay_warmup;
  if (optimizer.delay_warmup == 0 && kind.delay_warmup > 0) {
    const double updates = std::floor(static_cast<double>(config.run.updates) * kind.delay_warmup);
    optimizer.delay_warmup = std::max<int64_t>(1, static_cast<int64_t>(updates));
  }
  optimizer.own = config.optimizer.own.of_kind(kind.name);
  return optimizer;
}

void resolve_vocabulary(Config& config, const Dataset& dataset) {
  const int64_t data_vocabulary = dataset.vocabulary();
  if (config.model.vocabulary == 0 && has_open_tokens(config.model)) {
    take_tokens(dataset.special_tokens(), config.model);
  }
  const int64_t special = special_tokens(config.model);
  const int64_t needed = data_vocabulary + special;
  if (config.model.vocabulary == 0) config.model.vocabulary = needed;
  if (config.model.vocabulary < needed) {
    throw InputError(
        fmt::format("[model] vocabulary is {}, but the tokens in {} have a vocabulary of {}{}; leave it out to "
                    "take the data's, or prepare the text again",
                    config.model.vocabulary, config.data.tokens.empty() ? "[[data.source]]" : config.data.tokens,
                    data_vocabulary, special > 0 ? fmt::format(", and {} special tokens", special) : ""));
  }
}

int64_t token_vocabulary(const ModelSettings& model) {
  return model.vocabulary - special_tokens(model);
}

Layers build_layers(const Config& config) {
  return model_makers().at(config.model.kind).layers(config.model);
}

BalancedWork balanced_work(const Config& config) {
  return {config.pipeline.microbatch * config.model.context, config.pipeline.accumulate};
}

std::vector<LayerRange> build_partition(const Config& config, const Schedule& schedule, const Layers& layers) {
  check_stages(config);
  return partition_by_cost(layer_costs(layers, optimizer_config(config), balanced_work(config)), schedule);
}

void check_stages(const Config& config) {
  // All blocks are alike, so counting the layers of one is enough.
  Config small = config;
  small.model.layers = 1;
  if (small.model.vocabulary == 0) small.model.vocabulary = 1024;  // any number: the data's may not be known yet
  const auto layers_per_block = static_cast<int64_t>(build_layers(small).size()) - 2;
  const int64_t layers = config.model.layers * layers_per_block + 2;
  if (config.pipeline.stages <= layers) return;
  throw InputError(
      fmt::format("[pipeline] stages is {}, but the model has {} layers to share out (embedding, {} of {}, head); "
                  "use at most {} stages",
                  config.pipeline.stages, layers, counted(config.model.layers, "block"), layers_per_block, layers));
}

std::unique_ptr<Pipeline> build_pipeline(const Config& config) {
  return build_pipeline(config, build_schedule(config));
}

std::unique_ptr<Pipeline> build_pipeline(const Config& config, Schedule schedule, WorkerRange here,
                                         HostProcess process) {
  RuntimeOptions options = runtime_options(config, schedule);
  return make_pipeline(config, std::move(schedule), std::move(options), optimizer_config(config), here, process);
}

std::unique_ptr<Pipeline> build_evaluated_pipeline(const Config& config) {
  Schedule schedule = build_schedule(config);
  RuntimeOptions options = runtime_options(config, schedule);
  options.ema_decay = 0;
  return make_pipeline(config, std::move(schedule), std::move(options), std::nullopt, {}, {});
}

}  // namespace gyre
