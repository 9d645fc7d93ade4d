#include "gyre/schedule/v_shaped.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// The number of actions if every backward is split. Some are whole, so this is an upper bound.
int64_t split_actions(int64_t stages, int64_t window) {
  return stages * (3 * window + 1);
}

}  // namespace

int64_t two_stages(const OptionTable&) {
  return 2;
}

Schedule v_shaped_pipeline(const ScheduleOptions& options, int64_t least_window) {
  check_options(options);
  if (options.stages % 2 != 0) {
    throw InputError(fmt::format("schedule {}: every worker has two stages, and {} is {}; give an even number",
                                 options.name, options.names.stages, options.stages));
  }
  check_length(options, split_actions, least_window);
  Schedule schedule = one_pipeline(options);
  schedule.workers = options.stages / 2;
  schedule.programs.resize(static_cast<size_t>(schedule.workers));
  for (int stage = 0; stage < schedule.stages; ++stage) {
    schedule.placement[0][stage] = schedule.owner[0][stage] = std::min(stage, schedule.stages - 1 - stage);
  }
  return schedule;
}

VShapedProgram::VShapedProgram(Schedule& schedule, int worker)
    : program_(schedule.programs[worker]), window_(schedule.window) {
  half(Way::Down).stage = worker;
  half(Way::Up).stage = schedule.stages - 1 - worker;
  program_.period.reserve(static_cast<size_t>(split_actions(2, window_)));
}

void VShapedProgram::run_forward(Way way) {
  Half& h = half(way);
  if (h.forwards < window_) program_.period.push_back(forward(h.stage, h.forwards++));
}

void VShapedProgram::run_backward(Way way) {
  Half& h = half(way);
  if (h.input_halves == window_) return;
  program_.period.push_back(backward(h.stage, h.input_halves++));
  ++h.weight_halves;
}

void VShapedProgram::run_backward_input(Way way) {
  Half& h = half(way);
  if (h.input_halves < window_) program_.period.push_back(backward_input(h.stage, h.input_halves++));
}

void VShapedProgram::run_backward_weights(Way way) {
  Half& h = half(way);
  if (pending_weights(way) > 0) program_.period.push_back(backward_weights(h.stage, h.weight_halves++));
}

void VShapedProgram::run_updates() {
  for (const Half& h : halves_) program_.period.push_back(update(h.stage, 0));
}

int64_t VShapedProgram::pending_weights(Way way) const {
  return half(way).input_halves - half(way).weight_halves;
}

}  // namespace gyre
