// Schedules whose builders are wrong, which every command must refuse, and one that is right and does not say which
// windows suit it. An optimizer whose maker makes none.
#include <stdexcept>

#include "gyre/optim/config.h"
#include "gyre/schedule/builder_parts.h"
#include "outside/components.h"

namespace gyre::outside {
namespace {

void forwards(int stage, int64_t window, std::vector<Action>& actions) {
  for (int64_t m = 0; m < window; ++m) actions.push_back(forward(stage, m));
}
void backwards(int stage, int64_t window, std::vector<Action>& actions) {
  for (int64_t m = 0; m < window; ++m) actions.push_back(backward(stage, m));
}

Schedule no_backward(const ScheduleOptions& options) {
  return flushed_pipeline(options, forwards);
}
Schedule backward_first(const ScheduleOptions& options) {
  return flushed_pipeline(options, [](int stage, int64_t window, std::vector<Action>& actions) {
    backwards(stage, window, actions);
    forwards(stage, window, actions);
  });
}
Schedule no_windows(const ScheduleOptions& options) {
  return flushed_pipeline(options, [](int stage, int64_t window, std::vector<Action>& actions) {
    forwards(stage, window, actions);
    backwards(stage, window, actions);
  });
}
Schedule idle_worker(const ScheduleOptions& options) {
  Schedule schedule = no_windows(options);
  ++schedule.workers;
  schedule.programs.emplace_back();
  return schedule;
}
Schedule throws(const ScheduleOptions&) {
  throw std::runtime_error("no order found");
}

}  // namespace

void add_faulty() {
  schedule_kinds().add({"no-backward", "forwards alone", no_backward, flushing_windows});
  schedule_kinds().add({"backward-first", "each backward before its forward", backward_first, flushing_windows});
  schedule_kinds().add({"idle-worker", "a worker too many", idle_worker, flushing_windows});
  schedule_kinds().add({"throws", "its builder throws", throws, flushing_windows});
  schedule_kinds().add({"no-windows", "GPipe without suitable windows", no_windows});
  optimizer_kinds().add({.name = "makes-none", .meaning = "its maker gives null"});
  optimizer_makers().add({"makes-none",
                          [](const OptimizerConfig&, const std::vector<ParameterSpec>&,
                             at::Device) -> std::unique_ptr<Optimizer> { return nullptr; },
                          [](const OptimizerConfig&, const ParameterSpec&) { return 0.0; }});
}

}  // namespace gyre::outside
