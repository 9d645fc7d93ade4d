// DualPipeV (DeepSeek-V3 technical report, 2024: DualPipe; cut in half, so that weights are held once): on V-shaped
// stages, each worker in the steady state pairs a forward of one microbatch with a backward of another that goes the
// opposite way. A device may run such a pair as one, so that the communication of either hides behind the computation
// of the other; here they run one after the other. The order is that of PyTorch's ScheduleDualPipeV.
#include <deque>

#include "gyre/schedule/v_shaped.h"

namespace gyre {
namespace {

void write_program(Schedule& schedule, int worker) {
  const int below = schedule.workers - 1 - worker;
  const int above = worker + 1;  // including this worker
  VShapedProgram program(schedule, worker);
  std::deque<Way> pending;  // weight halves, in the order of their input halves
  const auto run_backward_input = [&](Way way) {
    program.run_backward_input(way);
    pending.push_back(way);
  };
  const auto run_oldest_weights = [&] {
    if (pending.empty()) return;
    program.run_backward_weights(pending.front());
    pending.pop_front();
  };
  const auto forward_beside_backward = [&](Way forward, Way backward) {
    program.run_forward(forward);
    program.run_backward(backward);
  };

  for (int i = 0; i < 2 * below; ++i) program.run_forward(Way::Down);
  for (int i = 0; i < above; ++i) {
    program.run_forward(Way::Down);
    program.run_forward(Way::Up);
  }
  // The first backwards, split so that the gradient is passed on early.
  for (int i = 0; i < below; ++i) {
    run_backward_input(Way::Up);
    run_oldest_weights();
    program.run_forward(Way::Up);
  }
  // The steady state.
  for (int64_t i = schedule.window - schedule.stages + above; i > 0; --i) {
    forward_beside_backward(Way::Down, Way::Up);
    forward_beside_backward(Way::Up, Way::Down);
  }
  // First no forwards are left on the way down, then none at all.
  for (int i = 0; i < below; ++i) {
    program.run_backward(Way::Up);
    forward_beside_backward(Way::Up, Way::Down);
  }
  // From the middle of these on, backwards are split again, and their weight halves fill what would be bubbles.
  for (int i = 0; i < 2 * above; ++i) {
    const Way way = i % 2 == 0 ? Way::Up : Way::Down;
    if (i < above) {
      program.run_backward(way);
    } else {
      run_backward_input(way);
    }
  }
  for (int i = 0; i < below; ++i) {
    run_oldest_weights();
    run_backward_input(Way::Down);
  }
  while (!pending.empty()) run_oldest_weights();
  program.run_updates();
}

Schedule build(const ScheduleOptions& options) {
  Schedule schedule = v_shaped_pipeline(options, options.stages);  // shorter windows do not fill it
  for (int worker = 0; worker < schedule.workers; ++worker) write_program(schedule, worker);
  return schedule;
}

}  // namespace

ScheduleKind dualpipe_v() {
  return {.name = "dualpipe-v",
          .meaning =
              "two stages on each worker, placed as in zb-v; alternates a forward of one microbatch with a backward of "
              "another",
          .build = build,
          .windows = flushing_windows,
          .stages_per_worker = two_stages};
}

}  // namespace gyre
