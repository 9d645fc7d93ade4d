#include "gyre/train/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "gyre/build/build.h"
#include "gyre/build/devices.h"
#include "gyre/build/owner_bytes.h"
#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/plan/planner.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/shape.h"

namespace gyre {
namespace {

constexpr double kFloat = 4;  // bytes

struct LayerBytes {
  std::string name;
  double cost = 0;  // by which layers are assigned to stages
  double version = 0, gradients = 0;
  OwnerBytes owner;
  double kept = 0, passing = 0, weights_passing = 0, split = 0, input = 0, output = 0;  // of one microbatch
  double tied = 0;                                                                      // see StageCost
};

bool is_bf16(const Config& config) {
  return compute_type(config) == at::kBFloat16;
}

LayerBytes bytes_of(const Config& config, WeightPolicy weights, const Layer& layer) {
  const at::Device device = device_named(config.pipeline.device);
  const MicrobatchShape shape{static_cast<double>(config.pipeline.microbatch),
                              static_cast<double>(config.model.context), is_bf16(config) ? 2.0 : kFloat,
                              config.pipeline.accumulate > 1, !has_streams(device)};
  auto specs = layer.parameters();
  double parameters = 0, tied = 0;
  for (const ParameterSpec& spec : specs) {
    (spec.tied_to.empty() ? parameters : tied) += numel_as_double(spec.shape);
  }
  std::erase_if(specs, [](const ParameterSpec& spec) { return !spec.tied_to.empty(); });
  LayerBytes bytes;
  bytes.name = layer.name();
  bytes.cost = layer_cost(layer, optimizer_config(config), balanced_work(config));
  bytes.version = parameters * shape.element_bytes;
  bytes.gradients = parameters * kFloat;
  bytes.tied = tied * kFloat;
  bytes.owner = owner_bytes(config, weights, device, specs);
  bytes.kept = layer.kept_bytes(shape);
  bytes.passing = layer.passing_bytes(shape);
  bytes.weights_passing = layer.weights_passing_bytes(shape);
  bytes.split = layer.split_bytes(shape);
  bytes.input = bytes.output = shape.tokens() * static_cast<double>(config.model.width) * shape.element_bytes;
  return bytes;
}

// Bytes of the embedding, of one block's layers and of the head. All blocks are alike, so one is built, even of a
// hundred thousand.
struct ModelBytes {
  LayerBytes embedding, head;
  std::vector<LayerBytes> block;
  double blocks = 0;

  template <typename Field>
  double sum(Field&& field) const {
    double of_block = 0;
    for (const LayerBytes& layer : block) of_block += field(layer);
    return field(embedding) + blocks * of_block + field(head);
  }
  double max_kept() const {
    double max = std::max(embedding.kept, head.kept);
    for (const LayerBytes& layer : block) max = std::max(max, layer.kept);
    return max;
  }
};

ModelBytes bytes_of(const Config& config, WeightPolicy weights) {
  Config small = config;
  small.model.layers = 1;
  const Layers layers = build_layers(small);
  ModelBytes bytes;
  bytes.embedding = bytes_of(config, weights, *layers.front());
  bytes.head = bytes_of(config, weights, *layers.back());
  for (size_t i = 1; i + 1 < layers.size(); ++i) bytes.block.push_back(bytes_of(config, weights, *layers[i]));
  bytes.blocks = static_cast<double>(config.model.layers);
  bytes.embedding.tied = bytes.head.tied * (is_bf16(config) ? 2 : kFloat) / kFloat;
  bytes.embedding.input =
      static_cast<double>(config.pipeline.microbatch) * static_cast<double>(config.model.context) * 8;
  return bytes;
}

// A key whose value decides how much memory is needed, and its usual value: the default, or a small vocabulary.
struct Key {
  const char* name;
  int64_t ModelSettings::*model;
  int64_t PipelineSettings::*pipeline;
  int64_t usual;

  int64_t& in(Config& config) const { return model != nullptr ? config.model.*model : config.pipeline.*pipeline; }
};

std::vector<Key> keys_that_cost() {
  const Config usual;
  return {{"[model] layers", &ModelSettings::layers, nullptr, usual.model.layers},
          {"[model] width", &ModelSettings::width, nullptr, usual.model.width},
          {"[model] mlp_width", &ModelSettings::mlp_width, nullptr, usual.model.mlp_width},
          {"[model] context", &ModelSettings::context, nullptr, usual.model.context},
          {"[model] vocabulary", &ModelSettings::vocabulary, nullptr, 256},
          {"[pipeline] microbatch", nullptr, &PipelineSettings::microbatch, usual.pipeline.microbatch}};
}

struct Costliest {
  std::string key;
  int64_t value = 0, usual = 0;
  double otherwise = 0;  // the least memory with the usual value
};

// The key whose usual value would lower the least memory most; `key` is empty if none would.
Costliest costliest_key(const Config& config, double least, Work work) {
  Costliest costliest;
  costliest.otherwise = least;
  for (const Key& key : keys_that_cost()) {
    Config other = config;
    int64_t& value = key.in(other);
    const int64_t given = value;
    if (given <= key.usual) continue;
    value = key.usual;
    // Heads must divide the width, whatever it is.
    if (key.model == &ModelSettings::width)
      value = (key.usual + other.model.heads - 1) / other.model.heads * other.model.heads;
    const double total = least_memory(other, work).total();
    if (value < given && total < costliest.otherwise) costliest = {key.name, given, value, total};
  }
  return costliest;
}

const char* name_of(Work work) {
  switch (work) {
    case Work::Train:
      return "this run";
    case Work::Evaluate:
      return "evaluating this run";
    case Work::Generate:
      return "generating with this run";
    case Work::Diagnose:
      return "diagnosing this run";
  }
  return "";
}

// The model of a trained run cannot be changed, only how it is used.
std::string advice(const Costliest& costliest, Work work) {
  const bool fixed = work != Work::Train && costliest.key != "[pipeline] microbatch";
  if (costliest.key.empty()) return fixed ? "it takes more memory" : "make the model smaller";
  const std::string key = fmt::format("{} = {} costs most", costliest.key, costliest.value);
  if (fixed) return key + "; it takes more memory";
  return fmt::format("{}, with {} it would be {}{}", key, costliest.usual, human_bytes(costliest.otherwise),
                     work == Work::Train ? "" : "; change it in the run's config.toml");
}

int64_t whole(double bytes) {
  return static_cast<int64_t>(bytes);
}

std::vector<LayerProfile> profiles_of(const Config& config, const ModelBytes& bytes) {
  std::vector<LayerProfile> profiles;
  const auto add = [&](const LayerBytes& layer) {
    LayerProfile profile;
    profile.name = layer.name;
    profile.update = layer.cost;  // not seconds, but it makes the cuts between stages those of training
    profile.input_bytes = whole(layer.input);
    profile.output_bytes = whole(layer.output);
    profile.activation_bytes = whole(layer.kept);
    profile.passing_bytes = whole(layer.passing);
    profile.weights_passing_bytes = whole(layer.weights_passing);
    profile.split_bytes = whole(layer.split);
    profile.weight_bytes = whole(layer.version);
    profile.tied_bytes = whole(layer.tied);
    profile.gradient_bytes = whole(layer.gradients);
    profile.optimizer_bytes = whole(layer.owner.held());
    profile.late_bytes = whole(layer.owner.passing.per_delay);
    profile.forecast_bytes = whole(layer.owner.forecast);
    profile.update_bytes = whole(layer.owner.step.prompt);
    profile.late_update_bytes = whole(layer.owner.step.late);
    profiles.push_back(profile);
  };
  add(bytes.embedding);
  for (int64_t block = 0; block < config.model.layers; ++block) {
    for (const LayerBytes& layer : bytes.block) add(layer);
  }
  add(bytes.head);
  return profiles;
}

}  // namespace

MemoryParts least_memory(const Config& given, Work work) {
  Config config = given;
  if (work == Work::Diagnose) config.run.precision = "fp32";
  if (work == Work::Diagnose) config.pipeline.recompute = false;
  if (work == Work::Evaluate) config.model.dropout = 0;  // no masks
  const ModelBytes model = bytes_of(config, weight_policy(config, Schedule()));
  const double version = model.sum([](const LayerBytes& layer) { return layer.version; });
  const double checkpoint = model.sum([](const LayerBytes& layer) { return layer.gradients; });  // fp32 too
  const double masters = model.sum([](const LayerBytes& layer) { return layer.owner.masters; });
  const double moments = model.sum([](const LayerBytes& layer) { return layer.owner.moments; });
  const double kept = model.sum([](const LayerBytes& layer) { return layer.kept; });
  const double costliest = model.max_kept();
  switch (work) {
    case Work::Train: {
      const double held = config.pipeline.recompute ? costliest : kept;
      // If a window has one microbatch, gradients may take the place of activations.
      const bool by_turns = config.pipeline.accumulate == 1 && config.pipeline.replicas == 1;
      return {version, checkpoint, masters + moments, by_turns ? std::max(held - checkpoint, 0.0) : held};
    }
    case Work::Evaluate:
      return {version, 0, masters, costliest};
    case Work::Generate:
      return {is_bf16(config) ? version : checkpoint, 0, 0, 0};
    case Work::Diagnose:
      return {version + checkpoint, checkpoint, masters + moments, kept};
  }
  return {};
}

namespace {

// That recompute makes the run fit, if that is predicted. The least memory would promise too much: with recompute the
// activations of all microbatches in flight are most of what it leaves out.
std::string advice_of_recompute(const Config& config, const MemoryLimit& limit, Work work) {
  if (work != Work::Train || config.pipeline.recompute) return "";
  Config other = config;
  other.pipeline.recompute = true;
  if (least_memory(other, work).total() > limit.bytes) return "";  // nor may sizes fit the prediction's integers
  const PredictedMemory predicted = predict_memory(other, build_schedule(other));
  const bool on_host = computes_on_host(other);
  const double program = on_host ? resident_bytes() : 0;
  const bool may_copy = on_host && other.run.checkpoint_background && has_room_for_copy(predicted, program, limit);
  const double needed = predicted.process.total() + program + (may_copy ? predicted.copy : 0);
  if (needed > limit.bytes) return "";
  return fmt::format(", or set [pipeline] recompute = true, with which {} are predicted", human_bytes(needed));
}

}  // namespace

void check_memory(const Config& config, const MemoryLimit& limit, Work work) {
  const double least = least_memory(config, work).total();
  if (least <= limit.bytes) return;
  const Costliest costliest = costliest_key(config, least, work);
  const auto [needed, there] = distinct_bytes(least, limit.bytes);
  throw InputError(fmt::format("{} needs {} at least, and {}; {}{}", name_of(work), needed, limit.with(there),
                               advice(costliest, work), advice_of_recompute(config, limit, work)));
}

bool has_room_for_copy(const PredictedMemory& memory, double program, const MemoryLimit& limit) {
  return memory.process.total() + memory.copy + program <= limit.bytes;
}

PredictedMemory predict_memory(const Config& config, Schedule schedule) {
  const WeightPolicy weights = schedule.weights = weight_policy(config, schedule);
  const ModelBytes model = bytes_of(config, weights);
  const CostModel costs = stage_costs(profiles_of(config, model), schedule, schedule.window, config.pipeline.recompute,
                                      config.pipeline.microbatch * config.model.context);
  PredictedMemory predicted;
  predicted.workers = peak_memory(schedule, costs, weights);
  predicted.copy = model.sum(
      [](const LayerBytes& layer) { return layer.gradients + layer.owner.moments + layer.owner.passing.saved; });
  MemoryParts& process = predicted.process;
  const auto replicas = static_cast<size_t>(config.pipeline.replicas);
  for (size_t number = 0; number < predicted.workers.size(); ++number) {
    const WorkerMemory& worker = predicted.workers[number];
    // All replicas of the whole pipeline read the same versions, so only the first replica's workers count.
    if (number < predicted.workers.size() / replicas) process.weights += static_cast<double>(worker.weights);
    process.gradients += static_cast<double>(worker.gradients);
    process.optimizer += static_cast<double>(worker.optimizer);
    // Within one process, gradients that are being sent are in their sender's memory, so worker.received is not added.
    process.activations += static_cast<double>(worker.activations + worker.passing);
  }
  process.gradients += static_cast<double>(schedule.pipelines * tied_sums_waiting(schedule)) *
                       static_cast<double>(costs.stage(schedule.stages - 1).tied_bytes);
  // The workers counted a newest version of each stage for every pipeline, but in one process all pipelines read the
  // same copy. While a replica of the whole pipeline has not adopted the newest version, the one before is held too.
  const int counted = schedule.pipelines / config.pipeline.replicas;
  const int held = replicas > 1 ? 2 : 1;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    process.weights -= static_cast<double>(counted - held) * static_cast<double>(costs.stage(stage).weight_bytes);
  }
  return predicted;
}

}  // namespace gyre
