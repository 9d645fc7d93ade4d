// Chimera (Li and Hoefler, 2021): two pipelines through the same workers in opposite directions, so that one's ramp
// fills the other's bubble. Synchronous: a window's gradients of both replicas meet in one update, and the replicas
// take its weights before the next window.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/first_ready.h"
#include "gyre/schedule/timeline.h"

namespace gyre {
namespace {

using Order = std::vector<std::vector<Action>>;  // [worker]

// The paper's: two 1F1B pipelines laid over one another. With actions of one unit, stage s runs the forward of its m-th
// microbatch at s + 2m and the backward at 2d - 1 - s + 2m; in the other pipeline the worker has stage d - 1 - s, so
// for d microbatches in all no two actions meet. Blocks of d follow each other.
Order overlaid_order(const Schedule& schedule) {
  using Timed = std::tuple<int64_t, int64_t, Action>;  // block, time, action
  std::vector<std::vector<Timed>> timed(schedule.workers);
  const int stages = schedule.stages;
  for (int64_t m = 0; m < schedule.window; ++m) {
    const int pipeline = schedule.pipeline_of(m);
    const int64_t block = m / stages;
    const int64_t index = (m - block * stages) / 2;
    for (int stage = 0; stage < stages; ++stage) {
      auto& actions = timed[schedule.worker_of(pipeline, stage)];
      actions.emplace_back(block, stage + 2 * index, forward(stage, m, pipeline));
      actions.emplace_back(block, 2 * stages - 1 - stage + 2 * index, backward(stage, m, pipeline));
    }
  }
  Order order(schedule.workers);
  for (int worker = 0; worker < schedule.workers; ++worker) {
    std::sort(timed[worker].begin(), timed[worker].end());
    for (const Timed& entry : timed[worker]) order[worker].push_back(std::get<Action>(entry));
  }
  return order;
}

void write_programs(Schedule& schedule, const Order& order) {
  for (int worker = 0; worker < schedule.workers; ++worker) schedule.programs[worker].period = order[worker];
  for (int stage = 0; stage < schedule.stages; ++stage) {
    schedule.programs[schedule.owner[stage]].period.push_back(update(stage, 0));
  }
  for (int pipeline = 0; pipeline < 2; ++pipeline) {
    for (int stage = 0; stage < schedule.stages; ++stage) {
      schedule.programs[schedule.worker_of(pipeline, stage)].period.push_back(adopt(stage, 0, pipeline));
    }
  }
}

}  // namespace

Schedule build_chimera(const ScheduleOptions& options) {
  check_options(options, "chimera");
  if (options.stages % 2 != 0 || options.window % 2 != 0) {
    throw InputError(
        fmt::format("schedule chimera: two pipelines need an even number of stages and of microbatches in "
                    "a window, not {} and {}; use 1f1b for odd ones",
                    options.stages, options.window));
  }
  Schedule schedule = one_pipeline(options, "chimera");
  schedule.pipelines = 2;
  schedule.placement.push_back(schedule.placement[0]);
  std::reverse(schedule.placement[1].begin(), schedule.placement[1].end());
  Schedule alternative = schedule;
  write_programs(schedule, overlaid_order(schedule));
  // With several blocks in a window the first-ready order, with 1F1B's bound on activations, fills the seams better.
  write_programs(alternative, first_ready_order(schedule.placement, schedule.workers, schedule.window / 2,
                                                schedule.stages, kForwardTicks, backward_ticks(options.tb_over_tf)));
  const ComputeCosts costs{1, options.tb_over_tf, 0, 0};
  return makespan(alternative, schedule.window, costs) < makespan(schedule, schedule.window, costs) ? alternative
                                                                                                    : schedule;
}

}  // namespace gyre
