// Cuts a list of layers into stages of nearly equal cost.
#pragma once

#include <span>
#include <vector>

#include "gyre/schedule/layer_range.h"

namespace gyre {

// The cut into `stages` contiguous, non-empty ranges whose costliest stage costs as little as possible (dynamic
// programming); among those, the one whose sum of squared stage costs is least. Every layer is in exactly one range.
// Errors: InputError when stages < 1 or stages > costs.size(), saying both numbers.
std::vector<LayerRange> partition_by_cost(std::span<const double> costs, int stages);

}  // namespace gyre
