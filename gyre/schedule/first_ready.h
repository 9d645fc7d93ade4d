// The order in which several pipelines run on shared workers under AMDP's conflict rule: what became ready first runs
// first. An event simulation finds the order, which then serves as a static schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/schedule/action.h"

namespace gyre {

// Every pipeline takes `per_pipeline` microbatches, at most `intake` of them between their first forward and their last
// backward. Pipeline p has the microbatches p, p + pipelines, ... Ties go to backwards, then to the lower index within
// the pipeline, then to the lower pipeline. Times are whole ticks, so that sums do not depend on the order of addition.
// placement: [pipeline][stage] -> worker. Returns the forwards and backwards of each worker in order.
std::vector<std::vector<Action>> first_ready_order(const std::vector<std::vector<int>>& placement, int workers,
                                                   int64_t per_pipeline, int64_t intake, int64_t forward_ticks,
                                                   int64_t backward_ticks);

// Ticks of a backward when a forward takes kForwardTicks.
inline constexpr int64_t kForwardTicks = int64_t{1} << 20;
int64_t backward_ticks(double tb_over_tf);

}  // namespace gyre
