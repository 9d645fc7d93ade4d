#include "gyre/plan/stage_costs.h"

#include <algorithm>
#include <optional>
#include <span>

#include "gyre/plan/partition.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/recompute_groups.h"

namespace gyre {
namespace {

// What a stage keeps of a microbatch, and in which groups of layers.
struct Kept {
  std::vector<LayerRange> groups;  // see recompute_groups(); without recompute, all layers
  std::vector<bool> repeats;       // [group]: its forward is repeated, so only its input is kept

  int64_t bytes(std::span<const LayerProfile> layers, size_t group) const {
    return repeats[group] ? layers[groups[group].begin].input_bytes : saved_bytes(layers, group);
  }
  int64_t saved_bytes(std::span<const LayerProfile> layers, size_t group) const {
    int64_t bytes = 0;
    for (int i = groups[group].begin; i < groups[group].end; ++i) bytes += layers[i].activation_bytes;
    return bytes;
  }
};

Kept kept_of(std::span<const LayerProfile> layers, const std::optional<HeldMicrobatches>& recompute) {
  if (!recompute) return {{{0, static_cast<int>(layers.size())}}, {false}};
  std::vector<LayerKeeps> keeps;
  for (const LayerProfile& layer : layers) keeps.push_back({layer.input_bytes, layer.activation_bytes});
  Kept kept{recompute_groups(keeps, *recompute), {}};
  for (size_t group = 0; group < kept.groups.size(); ++group) {
    kept.repeats.push_back(recompute->repeats(group, kept.groups.size()));
  }
  return kept;
}

// Goes through a microbatch's backward, last layer first. Calls visit(layer, held) for each, with the bytes that the
// stage then holds of the microbatch. Each layer frees what it has saved; if the halves of the backward come apart, it
// frees nothing, and holds `split_bytes` besides.
template <typename Visit>
void visit_backward(std::span<const LayerProfile> layers, const Kept& kept, bool splits, Visit&& visit) {
  int64_t held = 0;
  for (size_t group = 0; group < kept.groups.size(); ++group) held += kept.bytes(layers, group);
  for (size_t group = kept.groups.size(); group-- > 0;) {
    const int64_t made_again = kept.saved_bytes(layers, group) - kept.bytes(layers, group);
    held += std::max<int64_t>(made_again, 0);
    for (int i = kept.groups[group].end; i-- > kept.groups[group].begin;) {
      visit(layers[i], held);
      held += splits ? layers[i].split_bytes : -layers[i].activation_bytes;
    }
  }
}

// Both are estimates, and a layer of someone's own may give the second alone.
int64_t most_passing(const LayerProfile& layer) {
  return std::max(layer.passing_bytes, layer.weights_passing_bytes);
}

// The most that a backward holds besides what is kept until then, which is `kept_bytes`.
int64_t passing_bytes(std::span<const LayerProfile> layers, const Kept& kept, int64_t kept_bytes, bool splits) {
  int64_t max = 0;
  visit_backward(layers, kept, splits, [&](const LayerProfile& layer, int64_t held) {
    max = std::max(max, held + most_passing(layer) - kept_bytes);
  });
  return max;
}

// A window's first backward goes through the layers from the last to the first, and each frees its activations and
// allocates its gradients. So all activations, all gradients and `passing` bytes are never in memory at once. Returns
// how much their sum exceeds the actual peak.
int64_t replaced_bytes(std::span<const LayerProfile> layers, const Kept& kept, int64_t kept_bytes, int64_t passing) {
  int64_t gradients = 0, max = 0;
  visit_backward(layers, kept, /*splits=*/false, [&](const LayerProfile& layer, int64_t held) {
    max = std::max(max, held + gradients + layer.passing_bytes);
    gradients += layer.gradient_bytes;
    max = std::max(max, held + gradients + layer.weights_passing_bytes);
  });
  return kept_bytes + gradients + passing - max;
}

}  // namespace

CostModel stage_costs(const std::vector<LayerProfile>& layers, const Schedule& schedule, int64_t window, bool recompute,
                      int64_t tokens_per_microbatch) {
  std::vector<double> seconds;
  for (const LayerProfile& layer : layers) {
    seconds.push_back(static_cast<double>(window) * (layer.forward + layer.backward()) + layer.update);
  }
  const bool late = std::any_of(layers.begin(), layers.end(), [](const LayerProfile& layer) {
    return layer.late_bytes > 0 || layer.late_update_bytes != layer.update_bytes;
  });
  const std::vector<int64_t> delays = late ? longest_delays(schedule).delay : std::vector<int64_t>(schedule.stages);
  const std::vector<int64_t> forecasts = forecast_steps(schedule, schedule.weights);
  const std::vector<HeldMicrobatches> held = recompute ? held_microbatches(schedule) : std::vector<HeldMicrobatches>();
  CostModel model;
  model.tokens_per_microbatch = tokens_per_microbatch;
  for (const LayerRange range : partition_by_cost(seconds, schedule)) {
    const size_t stage = model.stages.size();
    const bool splits = splits_backward(schedule, static_cast<int>(stage));
    StageCost cost;
    cost.forward = cost.backward_input = cost.backward_weights = 0;
    const auto own = std::span(layers).subspan(range.begin, range.end - range.begin);
    const Kept kept = kept_of(own, recompute ? std::optional(held[stage]) : std::nullopt);
    for (size_t group = 0; group < kept.groups.size(); ++group) {
      const int64_t bytes = kept.bytes(own, group);
      cost.activation_bytes += bytes;
      if (!kept.repeats[group]) continue;
      for (int i = kept.groups[group].begin; i < kept.groups[group].end; ++i) cost.backward_input += own[i].forward;
      // What the forward that is repeated saves is held until the backward's second half.
      if (splits) cost.split_bytes += std::max<int64_t>(kept.saved_bytes(own, group) - bytes, 0);
    }
    cost.passing_bytes = passing_bytes(own, kept, cost.activation_bytes, splits);
    cost.replaced_bytes = replaced_bytes(own, kept, cost.activation_bytes, cost.passing_bytes);
    for (int i = range.begin; i < range.end; ++i) {
      const LayerProfile& layer = layers[i];
      cost.forward += layer.forward;
      cost.backward_input += layer.backward_input;
      cost.backward_weights += layer.backward_weights;
      cost.update += layer.update;
      if (splits) cost.split_bytes += layer.split_bytes;
      cost.weight_bytes += layer.weight_bytes;
      cost.gradient_bytes += layer.gradient_bytes;
      cost.optimizer_bytes += layer.optimizer_bytes + delays[stage] * layer.late_bytes;
      cost.update_bytes = std::max(cost.update_bytes, delays[stage] > 0 ? layer.late_update_bytes : layer.update_bytes);
      if (forecasts[stage] > 0) cost.optimizer_bytes += layer.forecast_bytes;
      cost.tied_bytes += layer.tied_bytes;
    }
    cost.output_bytes = range.end < static_cast<int>(layers.size()) ? layers[range.end - 1].output_bytes : 0;
    cost.backward = cost.backward_input + cost.backward_weights;
    model.stages.push_back(cost);
  }
  return model;
}

}  // namespace gyre
