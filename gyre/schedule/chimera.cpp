// Chimera (Li and Hoefler, 2021): two pipelines through the same workers in opposite directions, so that one's ramp
// fills the other's bubble. Synchronous: a window's gradients of both replicas meet in one update, and the replicas
// take its weights before the next window.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/first_ready.h"

namespace gyre {
namespace {

// The paper's order: two 1F1B pipelines overlaid. If every action takes one unit, stage s runs the forward of its m-th
// microbatch at s + 2m and the backward at 2d - 1 - s + 2m. In the other pipeline the worker has stage d - 1 - s, so
// with d microbatches in total no two actions collide. Blocks of d microbatches follow each other.
std::vector<Action> overlaid_order(const Schedule& schedule, int worker) {
  const int64_t stages = schedule.stages;
  std::vector<Action> order;
  order.reserve(static_cast<size_t>(2 * schedule.window + 3));
  std::vector<std::optional<Action>> at(static_cast<size_t>(3 * stages));  // by time within the block
  for (int64_t block = 0; block < schedule.window; block += stages) {
    for (int64_t m = block; m < std::min(block + stages, schedule.window); ++m) {
      const int pipeline = schedule.pipeline_of(m);
      const int stage = pipeline == 0 ? worker : schedule.stages - 1 - worker;
      const int64_t since = 2 * ((m - block) / 2);
      at[static_cast<size_t>(stage + since)] = forward(stage, m, pipeline);
      at[static_cast<size_t>(2 * stages - 1 - stage + since)] = backward(stage, m, pipeline);
    }
    for (auto& action : at) {
      if (action) order.push_back(*action);
      action.reset();
    }
  }
  return order;
}

void add_version_changes(Schedule& schedule) {
  for (int stage = 0; stage < schedule.stages; ++stage) {
    schedule.programs[schedule.owner[0][stage]].period.push_back(update(stage, 0));
  }
  for (int pipeline = 0; pipeline < 2; ++pipeline) {
    for (int stage = 0; stage < schedule.stages; ++stage) {
      schedule.programs[schedule.worker_of(pipeline, stage)].period.push_back(adopt(stage, 0, pipeline));
    }
  }
}

Schedule build(const ScheduleOptions& options) {
  check_options(options);
  if (options.stages % 2 != 0 || options.window % 2 != 0) {
    throw InputError(
        fmt::format("schedule chimera: two pipelines need an even number of stages and of microbatches in a window, "
                    "not {} and {}; change {} or {}, or use 1f1b for odd ones",
                    options.stages, options.window, options.names.stages, options.names.window));
  }
  check_length(options, [](int64_t stages, int64_t window) { return stages * (2 * window + 3); });
  Schedule schedule = one_pipeline(options);
  schedule.pipelines = 2;
  schedule.placement.push_back(schedule.placement[0]);
  std::reverse(schedule.placement[1].begin(), schedule.placement[1].end());
  // Only one order is held at a time: those of deep pipelines take gigabytes.
  const auto take_overlaid = [&] {
    for (int worker = 0; worker < schedule.workers; ++worker) {
      schedule.programs[worker].period = overlaid_order(schedule, worker);
    }
    add_version_changes(schedule);
  };
  // If a window has several blocks, the first-ready order, with 1F1B's bound on activations, leaves fewer gaps between
  // them.
  const auto take_first_ready = [&] {
    for (Program& program : schedule.programs) program = {};
    auto order = first_ready_order(schedule.placement, schedule.workers, schedule.window / 2, schedule.stages,
                                   kForwardTicks, backward_ticks(options.tb_over_tf));
    for (int worker = 0; worker < schedule.workers; ++worker) {
      schedule.programs[worker].period = std::move(order[worker]);
    }
    add_version_changes(schedule);
  };
  const ComputeCosts costs{1, options.tb_over_tf, 0, 0};
  take_overlaid();
  const double overlaid = makespan(schedule, schedule.window, costs);
  take_first_ready();
  if (makespan(schedule, schedule.window, costs) >= overlaid) take_overlaid();
  return schedule;
}

}  // namespace

ScheduleKind chimera() {
  return {.name = "chimera",
          .meaning = "two pipelines in opposite directions; with a flush",
          .build = build,
          .windows = [](const ScheduleOptions& options) {
            SuitableWindows windows = flushing_windows(options);
            windows.multiple_of = 2;
            return windows;
          }};
}

}  // namespace gyre
