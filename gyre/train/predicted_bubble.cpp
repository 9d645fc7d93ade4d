#include "gyre/train/predicted_bubble.h"

#include <algorithm>
#include <cstdint>

#include "gyre/build/build.h"
#include "gyre/simulate/simulator.h"
#include "gyre/train/drains.h"

namespace gyre {
namespace {

constexpr int64_t kMaxActions = 500'000;  // some hundredths of a second of simulation

StageCost cost_of(const Config& config, const Layers& layers, LayerRange range) {
  BalancedWork update = balanced_work(config);
  update.microbatches = 0;  // the optimizer's share alone
  StageCost cost;
  cost.forward = 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    cost.forward += layers[layer]->cost(update.tokens);
    cost.update += layer_cost(*layers[layer], optimizer_config(config), update);
  }
  // Each half of a backward has one matrix product for each of the forward's.
  cost.backward_input = cost.backward_weights = cost.forward;
  cost.backward = 2 * cost.forward;
  return cost;
}

}  // namespace

std::optional<double> predict_bubble(const Config& config, const Schedule& schedule, const Layers& layers,
                                     const std::vector<LayerRange>& ranges) {
  const DrainPlan plan(config.run);
  const int64_t drains = plan.count();
  const int64_t most = kMaxActions / (3 * schedule.window * schedule.stages);  // updates
  const int64_t shorter = plan.updates / drains;
  // Cut short, it must still be long beside filling and draining.
  if (most < 1 || (shorter > most && most * schedule.window < 20 * schedule.stages)) return std::nullopt;
  CostModel costs;
  for (const LayerRange range : ranges) costs.stages.push_back(cost_of(config, layers, range));

  double busy = 0, time = 0;  // of the workers' mean, in a segment of mean length
  const auto add = [&](int64_t updates, double share) {
    const Simulation segment = simulate(schedule, costs, {.microbatches = std::min(updates, most) * schedule.window});
    busy += share * segment.utilisation() * segment.makespan;
    time += share * segment.makespan;
  };
  const double longer = static_cast<double>(plan.updates % drains) / static_cast<double>(drains);
  add(shorter, 1 - longer);
  if (longer > 0 && shorter < most) add(shorter + 1, longer);
  return 1 - busy / time;
}

}  // namespace gyre
