#include "gyre/build/balance.h"

namespace gyre {

double layer_cost(const Layer& layer, const OptimizerConfig& optimizer, const BalancedWork& work) {
  constexpr double kForwards = 3;  // a backward has two matrix products for each one of a forward
  const double pass = kForwards * static_cast<double>(work.microbatches) * layer.cost(work.tokens);
  const OptimizerMaker& maker = optimizer_makers().at(optimizer.kind);
  double update = 0;
  for (const ParameterSpec& spec : layer.parameters()) {
    if (maker.update_cost != nullptr && spec.tied_to.empty()) update += maker.update_cost(optimizer, spec);
  }
  return pass + update;
}

std::vector<double> layer_costs(const Layers& layers, const OptimizerConfig& optimizer, const BalancedWork& work) {
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer_cost(*layer, optimizer, work));
  return costs;
}

}  // namespace gyre
