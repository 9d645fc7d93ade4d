// What V-shaped schedules share. Each worker has two stages: the pipeline goes down the workers and comes back up, so
// that of 2p stages worker w has stage w, on the way down, and stage 2p - 1 - w, on the way up. The first worker has
// both ends of the model, and every worker holds about as many activations as any other.
#pragma once

#include <array>
#include <cstdint>

#include "gyre/schedule/builder_parts.h"

namespace gyre {

// ScheduleKind::stages_per_worker of these schedules.
int64_t two_stages(const OptionTable& own);

// One pipeline on half as many workers as stages; programs empty. Throws InputError for an odd number of stages, for a
// window shorter than `least_window`, and for programs that would be too long.
Schedule v_shaped_pipeline(const ScheduleOptions& options, int64_t least_window = 1);

enum class Way { Down, Up };

// Writes one worker's program. Each stage takes its microbatches in ascending order, so this class counts them. Once a
// kind of action has run for the whole window, asking for another adds nothing.
class VShapedProgram {
 public:
  VShapedProgram(Schedule& schedule, int worker);

  void run_forward(Way way);
  void run_backward(Way way);
  void run_backward_input(Way way);
  // For the earliest microbatch whose input half has run and whose weight half has not; nothing if there is none.
  void run_backward_weights(Way way);
  void run_updates();

  // Input halves whose weight halves are still to run.
  int64_t pending_weights(Way way) const;
  size_t actions() const { return program_.period.size(); }

 private:
  struct Half {
    int stage = 0;
    int64_t forwards = 0, input_halves = 0, weight_halves = 0;  // so far
  };
  Half& half(Way way) { return halves_[static_cast<size_t>(way)]; }
  const Half& half(Way way) const { return halves_[static_cast<size_t>(way)]; }

  Program& program_;
  int64_t window_;
  std::array<Half, 2> halves_;
};

}  // namespace gyre
