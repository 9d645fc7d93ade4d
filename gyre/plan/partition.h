// Cuts a list of layers into stages of nearly equal cost.
#pragma once

#include <span>
#include <vector>

#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// The cut into `stages` contiguous, non-empty ranges whose costliest stage costs as little as possible. Among those the
// one with the least late work, the sum of every stage's cost times its delay; `delays` are in updates, and without
// them all stages are alike. Among those the most even one: the sum of squared costs is least. By dynamic programming.
// Every layer is in exactly one range.
// Errors: InputError when stages < 1 or stages > costs.size(), saying both numbers.
std::vector<LayerRange> partition_by_cost(std::span<const double> costs, int stages,
                                          std::span<const double> delays = {});

// For the schedule's stages and their mean delays: what is late learns less, and early stages, whose delay is longest,
// also hold the most versions and activations. Delays do not count where a worker holds several stages: there an even
// cut keeps the workers even.
std::vector<LayerRange> partition_by_cost(std::span<const double> costs, const Schedule& schedule);

}  // namespace gyre
