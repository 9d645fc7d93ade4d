// Cuts a list of layers into stages of nearly equal cost.
#pragma once

#include <span>
#include <vector>

#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// The cut into `stages` contiguous, non-empty ranges whose costliest stage costs as little as possible. Ties go to the
// cut with the least late work, the sum of every stage's cost times its delay (`delays` are in updates; empty: all are
// 0), and then to the most even cut, whose sum of squared costs is least. Uses dynamic programming. Every layer is in
// exactly one range.
// Errors: InputError if stages < 1 or stages > costs.size() (the message has both numbers), for a cost that is negative
// or not finite, and for delays that are not one finite number per stage.
std::vector<LayerRange> partition_by_cost(std::span<const double> costs, int stages,
                                          std::span<const double> delays = {});

// The cut for the schedule's stages and their mean delays. Late work learns less, and early stages, whose delay is
// longest, also hold the most versions and activations. Delays are ignored for a schedule with flushes, which has none,
// and if a worker holds several stages, since an even cut keeps the workers even.
std::vector<LayerRange> partition_by_cost(std::span<const double> costs, const Schedule& schedule);

}  // namespace gyre
