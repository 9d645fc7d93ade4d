// What layers cost, by which they are assigned to stages. It is counted, so that it is the same on every machine, and
// depends on nothing that may change without changing bits, such as recompute or which of several replicas makes an
// update.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/model/layer.h"
#include "gyre/optim/config.h"

namespace gyre {

struct BalancedWork {
  int64_t tokens = 0;        // of a microbatch
  int64_t microbatches = 1;  // of a replica, between two updates
};

// Multiply-adds between two updates: forward and backward of every microbatch, and the optimizer's update, whose share
// is large if the optimizer rotates and an update has few tokens.
double layer_cost(const Layer& layer, const OptimizerConfig& optimizer, const BalancedWork& work);
std::vector<double> layer_costs(const Layers& layers, const OptimizerConfig& optimizer, const BalancedWork& work);

}  // namespace gyre
