// GPipe (Huang et al., 2019): all forwards of a window, then all its backwards, then the update.
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  check_length(options, flushed_actions);
  Schedule schedule = one_pipeline(options);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[stage].period;
    period.reserve(static_cast<size_t>(2 * schedule.window + 1));
    for (int64_t m = 0; m < schedule.window; ++m) period.push_back(forward(stage, m));
    // In ascending order, so that gradients are added in the order in which plain training adds them.
    for (int64_t m = 0; m < schedule.window; ++m) period.push_back(backward(stage, m));
    period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace

ScheduleKind gpipe() {
  return {.name = "gpipe",
          .meaning = "all forwards of a window, then all backwards",
          .build = build,
          .windows = flushing_windows};
}

}  // namespace gyre
