#include "gyre/train/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "gyre/build/devices.h"
#include "gyre/config/schedule_options.h"
#include "gyre/config/without_effect.h"
#include "gyre/core/cores.h"
#include "gyre/core/text.h"
#include "gyre/kernels/linear.h"
#include "gyre/model/stage.h"
#include "gyre/schedule/delay.h"
#include "gyre/tensors/device_memory.h"
#include "gyre/train/predicted_bubble.h"

namespace gyre {
namespace {

constexpr int kMaxRows = 16;  // of the table of stages; more stages get one line

struct StageRow {
  std::string layers;
  int64_t parameters = 0;
  int64_t delay = 0;
};

// "blocks.1.mlp to blocks.3": a block that the stage does not cut at that end goes by the name that its layers share.
std::string names_of(const Layers& layers, LayerRange range) {
  if (range.end - range.begin == 1) return layers[range.begin]->name();
  const auto is_cut = [&](int at) {
    return at > 0 && at < static_cast<int>(layers.size()) && layers[at - 1]->prefix() == layers[at]->prefix();
  };
  const auto& begin = *layers[range.begin];
  const auto& end = *layers[range.end - 1];
  const std::string& first = is_cut(range.begin) ? begin.name() : begin.prefix();
  const std::string& last = is_cut(range.end) ? end.name() : end.prefix();
  return first == last ? first : fmt::format("{} to {}", first, last);
}

std::vector<StageRow> rows_of(const Schedule& schedule, const Layers& layers, const std::vector<LayerRange>& ranges) {
  const LongestDelays delays = longest_delays(schedule);
  std::vector<StageRow> rows;
  for (size_t stage = 0; stage < ranges.size(); ++stage) {
    const LayerRange range = ranges[stage];
    const Stage weights(Layers(layers.begin() + range.begin, layers.begin() + range.end), range.begin);
    rows.push_back({names_of(layers, range), weights.parameter_count(), delays.delay[stage]});
  }
  return rows;
}

std::string line(const char* what, const std::string& text) {
  return fmt::format("{:<11}{}\n", what, printable(text));  // a path in it may have any characters
}

std::string span(int64_t min, int64_t max, std::string (*format)(double)) {
  const std::string from = format(static_cast<double>(min)), to = format(static_cast<double>(max));
  return from == to ? from : from + " to " + to;
}

std::string table_of(const std::vector<StageRow>& rows) {
  size_t width = std::string("layers").size();
  for (const StageRow& row : rows) width = std::max(width, row.layers.size());
  std::string text = fmt::format("{:<11}{:<{}}  {:>10}  {:>5}\n", "stage", "layers", width, "parameters", "delay");
  for (size_t stage = 0; stage < rows.size(); ++stage) {
    text += fmt::format("{:>5}      {:<{}}  {:>10}  {:>5}\n", stage, rows[stage].layers, width,
                        human_count(static_cast<double>(rows[stage].parameters)), rows[stage].delay);
  }
  return text;
}

// Empty if the last stage reads no weight of the first, or is the only one.
std::string tied_line(const Stage& last, const std::vector<StageRow>& rows) {
  if (!last.tied() || rows.size() == 1) return "";
  return line("tied", fmt::format("stage {} reads {} of stage 0, with that stage's delay of {}", rows.size() - 1,
                                  last.tied()->spec.name, rows.front().delay));
}

std::string outline_of(const std::vector<StageRow>& rows, const std::vector<LayerRange>& ranges) {
  const auto by_size = [](LayerRange a, LayerRange b) { return a.end - a.begin < b.end - b.begin; };
  const auto [thin, thick] = std::minmax_element(ranges.begin(), ranges.end(), by_size);
  const auto by_parameters = [](const StageRow& a, const StageRow& b) { return a.parameters < b.parameters; };
  const auto [light, heavy] = std::minmax_element(rows.begin(), rows.end(), by_parameters);
  const auto by_delay = [](const StageRow& a, const StageRow& b) { return a.delay < b.delay; };
  const auto [early, late] = std::minmax_element(rows.begin(), rows.end(), by_delay);
  return line("stages", fmt::format("{}, of {} layer{} and {} parameters each; delays {}", rows.size(),
                                    span(thin->end - thin->begin, thick->end - thick->begin, human_count),
                                    thick->end - thick->begin == 1 ? "" : "s",
                                    span(light->parameters, heavy->parameters, human_count),
                                    span(early->delay, late->delay, human_count)));
}

std::string model_line(const Config& config, const std::vector<StageRow>& rows) {
  int64_t parameters = 0;
  for (const StageRow& row : rows) parameters += row.parameters;
  const auto& model = config.model;
  return line("model", fmt::format("{} parameters: {}, {} of width {}, context {}, vocabulary {}",
                                   human_count(static_cast<double>(parameters)), model.kind,
                                   counted(model.layers, "block"), model.width, model.context, model.vocabulary));
}

std::string tokens_text(int64_t tokens) {
  return human_count(static_cast<double>(tokens));
}

std::string data_lines(const Config& config, const Dataset& dataset) {
  std::string lines = line("data", fmt::format("{}: {} tokens to train on, {} to validate{}", dataset.description(),
                                               tokens_text(dataset.train_tokens()), tokens_text(dataset.val_tokens()),
                                               config.data.order == "epochs" ? ", in shuffled epochs" : ""));
  if (config.data.source.empty()) return lines;
  double total_weight = 0;
  for (const WeightedTokens& source : dataset.train()) total_weight += source.weight;
  for (const WeightedTokens& source : dataset.train()) {
    lines += line("", fmt::format("{}: {:.3g}% of the sequences, from {} tokens", source.name,
                                  100 * source.weight / total_weight, tokens_text(source.tokens.size())));
  }
  return lines;
}

// The setting that the data leaves without effect, in the form of settings_without_effect().
std::string unused_cut_line(const Config& config, const Dataset& dataset) {
  if (dataset.cuts_validation() || config.data.val_fraction == DataSettings().val_fraction) return "";
  return line("", "[data] val_fraction has no effect: the data has validation tokens of its own");
}

// Updates made before may have had other numbers of tokens.
std::string updates_line(const Config& config, DoneBefore before, const Dataset& dataset) {
  const double tokens = static_cast<double>(config.pipeline.replicas) *
                        static_cast<double>(config.pipeline.accumulate) *
                        static_cast<double>(config.pipeline.microbatch) * static_cast<double>(config.model.context);
  const int64_t updates = config.run.updates;
  const double total = static_cast<double>(before.tokens) + tokens * static_cast<double>(updates - before.updates);
  const bool goes_on = before.updates > 0 && before.updates < updates;
  const std::string which = goes_on ? fmt::format("{} to {}", before.updates + 1, updates) : fmt::format("{}", updates);
  return line(
      "updates",
      fmt::format("{} of {} tokens ({}{} x {} x {}): {} in all, the data {:.3g} times", which, human_count(tokens),
                  config.pipeline.replicas == 1 ? "" : fmt::format("{} replicas x ", config.pipeline.replicas),
                  counted(config.pipeline.accumulate, "microbatch"), counted(config.pipeline.microbatch, "sequence"),
                  config.model.context, human_count(total),
                  total / static_cast<double>(std::max<int64_t>(1, dataset.train_tokens()))));
}

// Says which parts of the learning rate's schedule the run is too short for.
std::string rate_lines(const Config& config) {
  const auto& optimizer = config.optimizer;
  const int64_t updates = config.run.updates;
  std::string lines;
  if (optimizer.warmup > updates) {
    lines += line("", fmt::format("warmup is {} and the run {}: the learning rate never reaches lr",
                                  counted(optimizer.warmup, "update"), updates));
  }
  if (optimizer.decay == "wsd" && optimizer.cooldown > updates) {
    lines += line("", fmt::format("cooldown is {} updates and the run {}: the learning rate begins amid it",
                                  optimizer.cooldown, updates));
  } else if (optimizer.decay == "wsd" && optimizer.warmup <= updates &&
             optimizer.warmup + optimizer.cooldown > updates) {
    lines +=
        line("", fmt::format("warmup is {} updates, cooldown {} and the run {}: the learning rate drops when warm-up "
                             "ends",
                             optimizer.warmup, optimizer.cooldown, updates));
  }
  return lines;
}

std::string schedule_line(const Config& config, const Schedule& schedule) {
  const int64_t replicas = config.pipeline.replicas;
  return line("schedule",
              fmt::format("{} on {}{}, weights {}, executor {}", schedule.name, counted(schedule.workers, "worker"),
                          replicas == 1 ? "" : fmt::format(" ({} replicas)", replicas),
                          to_string(weight_policy(config, schedule)), config.pipeline.executor));
}

std::string bubble_line(const Config& config, const Schedule& schedule, const Layers& layers,
                        const std::vector<LayerRange>& ranges) {
  constexpr double kLarge = 0.3;
  if (schedule.workers == 1) return "";
  const std::optional<double> bubble = predict_bubble(config, schedule, layers, ranges);
  if (!bubble) return "";
  const bool can_shrink = *bubble > kLarge && schedule.has_flush();
  return line("", fmt::format("bubble {:.1f}% predicted, by counted work, for workers with a core each{}",
                              100 * *bubble, can_shrink ? "; a larger accumulate makes it smaller" : ""));
}

// needed: the bytes that do not fit, by a prediction.
std::string may_not_fit(const Config& config, const Schedule& schedule, const PredictedMemory& memory,
                        const std::function<double(const PredictedMemory&)>& needed) {
  const std::string line = "this may not fit: lower microbatch or context";
  if (config.pipeline.recompute) return line;
  Config other = config;
  other.pipeline.recompute = true;
  const double otherwise = needed(predict_memory(other, schedule));
  if (otherwise >= needed(memory)) return line;
  return fmt::format("{}, or set recompute = true, with which it would be {}", line, human_bytes(otherwise));
}

// What the worker that needs most memory holds on its device.
std::string device_line(const Config& config, const Schedule& schedule, const PredictedMemory& memory) {
  const auto by_total = [](const WorkerMemory& a, const WorkerMemory& b) { return a.total() < b.total(); };
  const auto largest = [&](const PredictedMemory& of) {
    return std::max_element(of.workers.begin(), of.workers.end(), by_total);
  };
  const auto most = largest(memory);
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  const auto device = device_memory(run_device(config));
  const std::string there = device ? fmt::format(" of its {}", bytes(device->total)) : "";
  std::string lines = line(
      "device", fmt::format("{}; worker {} needs most of it, {}{} predicted: weights {}, gradients {}, optimizer {}, "
                            "activations {}",
                            config.pipeline.device, most - memory.workers.begin(), bytes(most->total()), there,
                            bytes(most->weights), bytes(most->gradients + most->received), bytes(most->optimizer),
                            bytes(most->activations + most->passing)));
  if (device && most->total() > device->total) {
    const auto needed = [&](const PredictedMemory& of) { return static_cast<double>(largest(of)->total()); };
    lines += line("", may_not_fit(config, schedule, memory, needed));
  }
  return lines;
}

std::string memory_line(const Config& config, const Schedule& schedule, const PredictedMemory& memory, bool may_copy,
                        const MemoryLimit& limit) {
  const MemoryParts& parts = memory.process;
  const double program = resident_bytes();
  const auto needed = [&](const PredictedMemory& of) {
    return of.process.total() + program + (may_copy ? of.copy : 0);
  };
  const double total = needed(memory);
  const std::string copy = may_copy ? fmt::format(", copy for checkpoints {}", human_bytes(memory.copy)) : "";
  const std::string tensors =
      computes_on_host(config)
          ? fmt::format("weights {}, gradients {}, optimizer {}, activations {}, ", human_bytes(parts.weights),
                        human_bytes(parts.gradients), human_bytes(parts.optimizer), human_bytes(parts.activations))
          : "";
  std::string lines = line(
      "memory", fmt::format("{} predicted: {}program {}{}", human_bytes(total), tensors, human_bytes(program), copy));
  if (config.run.checkpoint_background && !may_copy) {
    lines += line("", fmt::format("no room for a copy of {}: training waits while checkpoints are written",
                                  human_bytes(memory.copy)));
  }
  if (!limit.what.empty()) lines += line("", limit.with(human_bytes(limit.bytes)));
  if (total > limit.bytes) lines += line("", may_not_fit(config, schedule, memory, needed));
  return lines;
}

}  // namespace

std::string summarise(const Config& config, DoneBefore before, const Dataset& dataset, const Schedule& schedule,
                      const Layers& layers, const std::vector<LayerRange>& ranges, const PredictedMemory& memory,
                      bool may_copy, const MemoryLimit& limit) {
  const auto rows = rows_of(schedule, layers, ranges);
  std::string text = model_line(config, rows);
  text += data_lines(config, dataset);
  text += updates_line(config, before, dataset);
  text +=
      line("optimizer", fmt::format("{}, lr {}, {}", config.optimizer.kind, config.optimizer.lr, config.run.precision));
  text += rate_lines(config);
  for (const std::string& setting : settings_without_effect(config)) text += line("", setting);
  text += unused_cut_line(config, dataset);
  if (config.run.precision == "bf16" && computes_on_host(config) && !has_fast_bf16_products())
    text += line("", fmt::format("bf16 products: {}; training takes about as long as in fp32", bf16_products()));
  text += schedule_line(config, schedule);
  text += bubble_line(config, schedule, layers, ranges);
  if (!computes_on_host(config)) text += device_line(config, schedule, memory);
  text += memory_line(config, schedule, memory, may_copy, limit);
  text += rows.size() <= kMaxRows ? table_of(rows) : outline_of(rows, ranges);
  const LayerRange last = ranges.back();
  text += tied_line(Stage(Layers(layers.begin() + last.begin, layers.begin() + last.end), last.begin), rows);
  text.pop_back();
  return text;
}

std::string idle_cores(const Config& config, int workers_here) {
  if (config.pipeline.executor == "replay" || !computes_on_host(config)) return "";
  const int64_t cores = usable_core_count(), each = config.pipeline.threads_per_worker;
  const int64_t threads = std::min(cores / workers_here, kMaxThreadsPerWorker);
  if (threads <= each) return "";
  return fmt::format("{:<11}the run uses {} of {}; threads_per_worker = {} would use {}, and may change last bits",
                     "cores", workers_here * each, cores, threads, workers_here * threads);
}

}  // namespace gyre
