// PipeDream (Narayanan et al., 2019): 1F1B without a flush, an update as soon as a window's last backward is done.
// Stage k of P runs P-1-k forwards ahead, so with a window of one its gradients are P-1-k updates old.
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  check_length(options, [](int64_t stages, int64_t window) {
    return stages * (stages - 1) / 2 + flushed_actions(stages, window);
  });
  Schedule schedule = one_pipeline(options);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    Program& program = schedule.programs[stage];
    const int64_t ahead = schedule.stages - 1 - stage;
    for (int64_t m = 0; m < ahead; ++m) program.prologue.push_back(forward(stage, m));
    for (int64_t m = 0; m < schedule.window; ++m) {
      program.period.push_back(forward(stage, ahead + m));
      program.period.push_back(backward(stage, m));
    }
    program.period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace

ScheduleKind pipedream() {
  return {.name = "pipedream",
          .meaning = "no flush; an update after every microbatch, or after every window of them",
          .build = build,
          .windows = [](const ScheduleOptions&) { return SuitableWindows{}; }};
}

}  // namespace gyre
