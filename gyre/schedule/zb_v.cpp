// ZB-V (Qi et al., 2023, "Zero bubble pipeline parallelism", section 6; 2024, "Pipeline parallelism with controllable
// memory"): split backwards on V-shaped stages. If a forward, the input half I and the weight half W of a backward take
// equally long, no worker waits between its first and its last action, and each holds as many activations as the first
// worker of 1F1B. The order is that of PyTorch's ScheduleZBVZeroBubble.
#include <algorithm>

#include "gyre/schedule/v_shaped.h"

namespace gyre {
namespace {

void write_program(Schedule& schedule, int worker) {
  const int workers = schedule.workers;
  const int below = workers - worker;  // including this worker
  VShapedProgram program(schedule, worker);
  const auto whole_backward = [&](Way way) {
    program.run_backward_input(way);
    program.run_backward_weights(way);
  };
  // Repeats the step until the window has no more actions for it, at most `times` times.
  const auto repeat = [&](int64_t times, auto step) {
    for (size_t before = 0; times > 0; --times) {
      before = program.actions();
      step();
      if (program.actions() == before) return;
    }
  };

  // Forwards until the first microbatch is back from below, then until it has come all the way up.
  repeat(2LL * below - 1, [&] { program.run_forward(Way::Down); });
  repeat(worker, [&] {
    program.run_forward(Way::Up);
    program.run_forward(Way::Down);
  });
  // Until the first gradient is back.
  repeat(below, [&] {
    program.run_forward(Way::Up);
    whole_backward(Way::Up);
  });
  // The steady state: one of each, down and up. So far `workers` forwards have run on the way up. A window that does
  // not fill the pipeline repeats this as often as the shortest one that does.
  repeat(std::max<int64_t>(schedule.window, 2LL * workers - 1) - workers, [&] {
    program.run_forward(Way::Down);
    whole_backward(Way::Down);
    program.run_forward(Way::Up);
    whole_backward(Way::Up);
  });
  // No forwards are left: input halves keep the pipeline moving, and weight halves fill what would be bubbles.
  repeat(worker, [&] {
    program.run_backward_input(Way::Down);
    program.run_backward_input(Way::Up);
  });
  repeat(below, [&] { whole_backward(Way::Down); });
  for (const Way way : {Way::Up, Way::Down}) {
    while (program.pending_weights(way) > 0) program.run_backward_weights(way);
  }
  program.run_updates();
}

Schedule build(const ScheduleOptions& options) {
  Schedule schedule = v_shaped_pipeline(options);
  for (int worker = 0; worker < schedule.workers; ++worker) write_program(schedule, worker);
  return schedule;
}

}  // namespace

ScheduleKind zb_v() {
  return {.name = "zb-v",
          .meaning =
              "two stages on each worker, placed down the workers and back up (a V); the gradients of weights wait, "
              "and fill the bubble",
          .build = build,
          .windows = flushing_windows,
          .stages_per_worker = two_stages};
}

}  // namespace gyre
