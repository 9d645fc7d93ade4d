// Registers and simulates an additional schedule: GPipe whose backwards begin with the last microbatch.
#include <cstdio>

#include "gyre/schedule/builder_parts.h"
#include "gyre/simulate/simulator.h"

gyre::Schedule last_first(const gyre::ScheduleOptions& options) {
  return gyre::flushed_pipeline(options, [](int stage, int64_t window, std::vector<gyre::Action>& actions) {
    for (int64_t m = 0; m < window; ++m) actions.push_back(gyre::forward(stage, m));
    for (int64_t m = window; m-- > 0;) actions.push_back(gyre::backward(stage, m));
  });
}

int main() {
  gyre::schedule_kinds().add({"last-first", "GPipe, last backward first", last_first, gyre::flushing_windows});
  const gyre::Schedule schedule = gyre::make_schedule({.name = "last-first", .stages = 4, .window = 8});
  std::fputs(gyre::to_text(gyre::simulate(schedule, gyre::uniform_costs(2), {.microbatches = 16})).c_str(), stdout);
}
