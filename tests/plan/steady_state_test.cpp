// Tests the steady state against runs that are so long that their beginning makes no difference.
#include "gyre/plan/steady_state.h"

#include <gtest/gtest.h>

#include <string>

#include "gyre/core/random.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

// Stages of equal cost but for the first and the last, which take up to four times as long.
CostModel uneven(int stages, RandomStream& stream) {
  CostModel costs;
  costs.tokens_per_microbatch = 100;
  for (int stage = 0; stage < stages; ++stage) {
    const bool is_end = stage == 0 || stage == stages - 1;
    const double work = is_end ? 1 + 3 * stream.uniform() : 1;
    StageCost cost;
    cost.forward = work;
    cost.backward_input = work * (0.5 + stream.uniform());
    cost.backward_weights = work * (0.5 + stream.uniform());
    cost.backward = cost.backward_input + cost.backward_weights;
    cost.update = 0.3 * stream.uniform();
    costs.stages.push_back(cost);
  }
  return costs;
}

// Without flushes it may take many updates until the workers wait for each other as they do from then on.
TEST(SteadyState, IsThatOfALongRun) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (const std::string name : {"pipedream", "paci", "1f1b", "amdp"}) {
    for (int round = 0; round < 60; ++round) {
      ScheduleOptions options;
      options.name = name;
      options.stages = 2 * static_cast<int>(1 + stream.below(4));
      options.window = options.stages * static_cast<int64_t>(name == "amdp" ? 1 : 1 + stream.below(3));
      if (name == "pipedream" || name == "paci") options.window = static_cast<int64_t>(1 + stream.below(6));
      const Schedule schedule = make_schedule(options);
      const CostModel costs = uneven(schedule.stages, stream);
      const SteadyState state = steady_state(schedule, costs, {});
      const auto makespan = [&](int64_t microbatches) {
        SimulationOptions run;
        run.microbatches = microbatches;
        return simulate(schedule, costs, run).makespan;
      };
      const int64_t whole = 100 * schedule.stages * schedule.window;
      const double expected = (makespan(2 * whole) - makespan(whole)) / static_cast<double>(whole);
      EXPECT_NEAR(state.seconds / static_cast<double>(state.microbatches), expected, 0.01 * expected)
          << name << ", " << options.stages << " stages, window " << options.window;
    }
  }
}

}  // namespace
}  // namespace gyre
