// A schedule of one's own, registered and simulated: GPipe whose backwards begin with the last microbatch.
#include <cstdio>

#include "gyre/schedule/builder_parts.h"
#include "gyre/simulate/simulator.h"

gyre::Schedule last_first(const gyre::ScheduleOptions& options) {
  gyre::Schedule schedule = gyre::one_pipeline(options);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[stage].period;
    for (int64_t m = 0; m < schedule.window; ++m) period.push_back(gyre::forward(stage, m));
    for (int64_t m = schedule.window; m-- > 0;) period.push_back(gyre::backward(stage, m));
    period.push_back(gyre::update(stage, 0));
  }
  return schedule;
}

int main() {
  gyre::schedule_kinds().add({.name = "last-first",
                              .meaning = "GPipe, last backward first",
                              .build = last_first,
                              .windows = gyre::flushing_windows});
  const gyre::Schedule schedule = gyre::make_schedule({.name = "last-first", .stages = 4, .window = 8});
  std::fputs(gyre::to_text(gyre::simulate(schedule, gyre::uniform_costs(2), {.microbatches = 16})).c_str(), stdout);
}
