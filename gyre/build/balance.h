// What layers cost, by which they are shared out to stages: counted, so that it is the same on every machine, and from
// nothing that may be changed without changing bits, such as recompute or who of several replicas makes an update.
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

// In multiply-adds between two updates: of every microbatch's forward and backward, and of the optimizer's update,
// whose share is large where it rotates and updates are small.
double layer_cost(const Layer& layer, const OptimizerConfig& optimizer, const BalancedWork& work);
std::vector<double> layer_costs(const Layers& layers, const OptimizerConfig& optimizer, const BalancedWork& work);

}  // namespace gyre
