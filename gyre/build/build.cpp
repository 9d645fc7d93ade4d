#include "gyre/build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "gyre/batches/masked_batches.h"
#include "gyre/core/error.h"
#include "gyre/model/bert.h"
#include "gyre/model/gpt.h"
#include "gyre/optim/learning_rate.h"

namespace gyre {
namespace {

ClipScope clip_scope(const Config& config, const Schedule& schedule) {
  const std::string& scope = config.optimizer.clip_scope;
  if (config.optimizer.clip == 0 || scope == "none") return ClipScope::None;
  if (scope == "global") return ClipScope::Global;
  if (scope == "stage") return ClipScope::Stage;
  return schedule.has_flush() ? ClipScope::Global : ClipScope::Stage;
}

}  // namespace

RuntimeOptions runtime_options(const Config& config, const Schedule& schedule) {
  LearningRateSchedule rate;
  rate.peak = config.optimizer.lr;
  rate.warmup = config.optimizer.warmup;
  rate.total = config.run.updates;
  rate.decay = config.optimizer.decay;
  rate.floor = config.optimizer.floor;

  RuntimeOptions options;
  options.compute = config.run.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  options.weights = weight_policy(config, schedule);
  options.discrepancy = config.optimizer.discrepancy;
  options.recompute = config.pipeline.recompute;
  options.clip_scope = clip_scope(config, schedule);
  options.clip = config.optimizer.clip;
  options.max_skipped = config.optimizer.max_skipped;
  options.learning_rate = [rate](int64_t update) { return rate.at(update); };
  options.seed = static_cast<uint64_t>(config.run.seed);
  options.threads_per_worker = threads_per_worker(config);
  options.stall_seconds = config.pipeline.stall_seconds;
  return options;
}

int threads_per_worker(const Config& config) {
  const int64_t cores = std::thread::hardware_concurrency();  // 0: not known
  if (cores > 0 && config.pipeline.threads > cores) {
    throw InputError(fmt::format("[pipeline] threads is {}, and this machine has {} core{}; give 1 to {}",
                                 config.pipeline.threads, cores, cores == 1 ? "" : "s", cores));
  }
  return static_cast<int>(config.pipeline.threads);
}

OptimizerConfig optimizer_config(const Config& config) {
  OptimizerConfig optimizer;
  optimizer.kind = config.optimizer.kind;
  const bool nesterov = config.optimizer.kind == "nesterov-async";
  optimizer.beta1 = config.optimizer.betas.empty() ? (nesterov ? 0.99 : 0.9) : config.optimizer.betas[0];
  optimizer.beta2 = config.optimizer.betas.empty() ? 0.999 : config.optimizer.betas[1];
  optimizer.epsilon = config.optimizer.epsilon;
  optimizer.weight_decay = config.optimizer.weight_decay;
  optimizer.frequency = config.optimizer.frequency;
  optimizer.source = config.optimizer.source;
  optimizer.geometry = config.optimizer.geometry;
  optimizer.refresh = config.optimizer.refresh;
  optimizer.drift = config.optimizer.drift;
  optimizer.refresh_lag = config.optimizer.refresh_lag;
  optimizer.covariance_beta = config.optimizer.covariance_beta;
  optimizer.covariance_every = config.optimizer.covariance_every;
  optimizer.long_sides = config.optimizer.long_sides;
  optimizer.sketch = config.optimizer.sketch;
  optimizer.max_dimension = config.optimizer.max_dimension;
  optimizer.transport = config.optimizer.transport;
  optimizer.look_ahead = config.optimizer.look_ahead;
  optimizer.products = config.optimizer.products;
  optimizer.covariance_products = config.optimizer.covariance_products;
  optimizer.iteration_products = config.optimizer.iteration_products;
  optimizer.delay_warmup = config.optimizer.delay_warmup;
  const bool pipedream_lr = config.optimizer.kind == "pipedream-lr" || config.optimizer.kind == "pipemare";
  // The paper's 7k of 250k updates.
  if (pipedream_lr && optimizer.delay_warmup == 0) {
    optimizer.delay_warmup = std::max<int64_t>(1, config.run.updates * 7 / 250);
  }
  optimizer.lambda = config.optimizer.lambda;
  optimizer.matrix_lr_ratio = config.optimizer.matrix_lr_ratio;
  return optimizer;
}

void resolve_vocabulary(Config& config, int64_t data_vocabulary) {
  const int64_t needed = data_vocabulary + (config.model.kind == "bert" ? SpecialTokens::kCount : 0);
  if (config.model.vocabulary == 0) config.model.vocabulary = needed;
  if (config.model.vocabulary != needed) {
    throw InputError(
        fmt::format("[model] vocabulary is {}, but the tokens in {} have a vocabulary of {}{}; leave it out to "
                    "take the data's, or prepare the text again",
                    config.model.vocabulary, config.data.tokens, data_vocabulary,
                    needed > data_vocabulary ? fmt::format(", and {} special tokens", SpecialTokens::kCount) : ""));
  }
}

namespace {

Layers build_gpt_layers(const Config::Model& model) {
  GptConfig gpt;
  gpt.layers = static_cast<int>(model.layers);
  gpt.width = model.width;
  gpt.heads = model.heads;
  gpt.context = model.context;
  gpt.vocabulary = model.vocabulary;
  gpt.mlp_width = model.mlp_width;
  gpt.activation = model.activation;
  gpt.bias = model.bias;
  gpt.dropout = model.dropout;
  return build_gpt(gpt);
}

Layers build_bert_layers(const Config::Model& model) {
  BertConfig bert;
  bert.layers = static_cast<int>(model.layers);
  bert.width = model.width;
  bert.heads = model.heads;
  bert.context = model.context;
  bert.vocabulary = model.vocabulary;
  bert.separator = SpecialTokens(model.vocabulary - SpecialTokens::kCount).separator;
  bert.mlp_width = model.mlp_width;
  bert.activation = model.activation;
  bert.dropout = model.dropout;
  bert.post_norm = model.norm != "pre";
  bert.sentence_order = model.sentence_order;
  return build_bert(bert);
}

}  // namespace

Layers build_layers(const Config& config) {
  return config.model.kind == "bert" ? build_bert_layers(config.model) : build_gpt_layers(config.model);
}

std::vector<LayerRange> build_partition(const Config& config, const Layers& layers) {
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(config.pipeline.microbatch * config.model.context));
  check_stages(config);
  return partition_by_cost(costs, static_cast<int>(config.pipeline.stages));
}

void check_stages(const Config& config) {
  const int64_t layers = config.model.layers + 2;
  if (config.pipeline.stages <= layers) return;
  throw InputError(
      fmt::format("[pipeline] stages is {}, but the model has {} layers to share out (embedding, {} blocks, head); use "
                  "at most {} stages",
                  config.pipeline.stages, layers, config.model.layers, layers));
}

void check_clipping(const Config& config, const Schedule& schedule) {
  if (clip_scope(config, schedule) != ClipScope::Global || schedule.has_flush()) return;
  throw InputError(fmt::format(
      "[optimizer] clip_scope = \"global\" needs a schedule with a flush (gpipe, 1f1b, ...), and {} has none; "
      "use clip_scope = \"stage\"",
      schedule.name));
}

std::unique_ptr<Pipeline> build_pipeline(const Config& config) {
  return build_pipeline(config, build_schedule(config));
}

std::unique_ptr<Pipeline> build_pipeline(const Config& config, Schedule schedule) {
  const Layers layers = build_layers(config);
  const auto ranges = build_partition(config, layers);
  RuntimeOptions options = runtime_options(config, schedule);
  return std::make_unique<Pipeline>(std::move(schedule), layers, ranges, std::move(options), optimizer_config(config));
}

}  // namespace gyre
