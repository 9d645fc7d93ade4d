// PipeDream-2BW (Narayanan et al., 2021): PipeDream's order with windows of at least as many microbatches as stages,
// and two versions of the weights. All microbatches of window w read the weights of w - 1 updates, at every stage: an
// update's weights are adopted when the window after the next begins, so the delay is one everywhere.
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  check_length(
      options,
      [](int64_t stages, int64_t window) {
        return stages * (stages - 1) / 2 + 2 * flushed_actions(stages, window) + stages;
      },
      options.stages);
  Schedule schedule = pipedream().build(options);
  const int64_t window = schedule.window;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    Program& program = schedule.programs[stage];
    const std::vector<Action> once = std::move(program.period);
    program.period.clear();
    // The first repetition adopts nothing: windows 0 and 1 read the initial weights. Each later one adopts before its
    // first forward of a window. At the last stage an update comes directly before that forward; the adoption goes
    // before the update.
    program.prologue.insert(program.prologue.end(), once.begin(), once.end());
    const bool last = stage == schedule.stages - 1;
    for (Action action : once) {
      action.microbatch += action.is_per_window() ? 1 : window;
      const bool boundary = last ? action.kind == ActionKind::Update
                                 : action.kind == ActionKind::Forward && action.microbatch == 2 * window;
      if (boundary) program.period.push_back(adopt(stage, 0));
      program.period.push_back(action);
    }
  }
  return schedule;
}

}  // namespace

ScheduleKind pipedream_2bw() {
  return {.name = "pipedream-2bw",
          .meaning = "no flush; two versions of the weights, and a delay of one update at every stage",
          .build = build,
          .windows = [](const ScheduleOptions& options) { return SuitableWindows{.usual = options.stages}; }};
}

}  // namespace gyre
