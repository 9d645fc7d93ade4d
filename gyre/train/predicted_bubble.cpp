#include "gyre/train/predicted_bubble.h"

#include <algorithm>
#include <cstdint>

#include "gyre/build/build.h"
#include "gyre/simulate/simulator.h"

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

// Updates from one drain of the run to the next.
int64_t updates_between_drains(const Config& config) {
  int64_t updates = config.run.updates;
  for (const int64_t every : {config.run.eval_every, config.run.checkpoint_every}) {
    if (every > 0) updates = std::min(updates, every);
  }
  return updates;
}

}  // namespace

std::optional<double> predict_bubble(const Config& config, const Schedule& schedule, const Layers& layers,
                                     const std::vector<LayerRange>& ranges) {
  const int64_t actions_per_window = 3 * schedule.window * schedule.stages;
  const int64_t updates = std::min(updates_between_drains(config), kMaxActions / actions_per_window);
  // Cut short, it must still be long beside filling and draining.
  const bool is_whole = updates == updates_between_drains(config);
  if (updates < 1 || (!is_whole && updates * schedule.window < 20 * schedule.stages)) return std::nullopt;
  CostModel costs;
  for (const LayerRange range : ranges) costs.stages.push_back(cost_of(config, layers, range));
  SimulationOptions options;
  options.microbatches = updates * schedule.window;
  return 1 - simulate(schedule, costs, options).utilisation();
}

}  // namespace gyre
