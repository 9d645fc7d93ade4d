// The order that several pipelines take on shared workers when conflicts are decided while they run: what became ready
// first runs first (AMDP's conflict rule). Freezing the order makes a static schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/schedule/action.h"

namespace gyre {

// Every pipeline takes `per_pipeline` microbatches, at most `intake` of them between their first forward and their last
// backward; pipeline p's are p, p + pipelines, ... Ties go to backwards, then to the lower index within the pipeline,
// then to the lower pipeline. Times are whole ticks, so that their sums are equal in whatever order they are added.
// placement: [pipeline][stage] -> worker. Returns the forwards and backwards of each worker in order.
std::vector<std::vector<Action>> first_ready_order(const std::vector<std::vector<int>>& placement, int workers,
                                                   int64_t per_pipeline, int64_t intake, int64_t forward_ticks,
                                                   int64_t backward_ticks);

// Ticks of a backward when a forward takes kForwardTicks.
inline constexpr int64_t kForwardTicks = int64_t{1} << 20;
int64_t backward_ticks(double tb_over_tf);

}  // namespace gyre
