// Tests the steady state against runs that are so long that their beginning makes no difference.
#include "gyre/plan/steady_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
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

struct Case {
  ScheduleOptions options;
  CostModel costs;
  Cluster cluster;  // its links may be so slow that they limit everything
};

Case random_case(RandomStream& stream) {
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(stream.below(static_cast<uint64_t>(most) + 1 - static_cast<uint64_t>(least)));
  };
  Case drawn;
  const auto kinds = schedule_kinds().all();
  drawn.options.name = kinds[stream.below(kinds.size())].name;
  drawn.options.stages = 2 * between(1, 4);
  drawn.options.window = drawn.options.stages * static_cast<int64_t>(between(1, 3));
  if (drawn.options.name == "pipedream" || drawn.options.name == "paci") drawn.options.window = between(1, 6);
  drawn.options.replicas = between(1, 3);
  drawn.options.by_stages = drawn.options.replicas > 1 && between(0, 1) == 1;
  drawn.options.shard_optimizer = between(0, 1) == 1;
  drawn.options.tied = between(0, 2) == 0;
  drawn.costs = uneven(drawn.options.stages, stream);
  for (StageCost& stage : drawn.costs.stages) {
    stage.output_bytes = between(1, 100);
    stage.weight_bytes = between(1, 400);
    stage.gradient_bytes = 2 * stage.weight_bytes;
  }
  const double slowness = std::pow(10.0, -2 + 2.5 * stream.uniform());
  drawn.cluster.settings.within_host = "inside";
  drawn.cluster.settings.between_hosts = "between";
  drawn.cluster.links = {{"inside", 0.1 * slowness, 400 / slowness},
                         {"between", slowness, 100 / slowness, between(0, 1) == 1}};
  for (int host = 0; host < 24; ++host) {
    const int workers = between(1, 3);
    drawn.cluster.hosts.push_back(
        {.name = fmt::format("host-{}", host), .workers = workers, .speed = 0.5 + stream.uniform()});
  }
  return drawn;
}

TEST(SteadyState, OnClustersIsThatOfAVeryLongRun) {
  RandomStream stream(2, StreamPurpose::Test, 0);
  for (int round = 0; round < 150; ++round) {
    const Case drawn = random_case(stream);
    Schedule schedule = make_schedule(drawn.options);
    schedule.global_norm = schedule.has_flush() && round % 2 == 0;
    const WorkerPlaces places(drawn.cluster, schedule.workers);
    const SimulationOptions on_places{.places = &places};
    const SteadyState state = steady_state(schedule, drawn.costs, on_places);
    const auto makespan = [&](int64_t microbatches) {
      SimulationOptions run = on_places;
      run.microbatches = microbatches;
      return simulate(schedule, drawn.costs, run).makespan;
    };
    const int64_t whole = 1000 * schedule.shift;
    const double expected = (makespan(2 * whole) - makespan(whole)) / static_cast<double>(whole);
    EXPECT_NEAR(state.seconds, expected, 1e-8 * expected) << round << ": " << schedule.name;
    EXPECT_LT(state.simulation.microbatches, whole / 4) << round << ": " << schedule.name;
  }
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
      EXPECT_NEAR(state.seconds, expected, 0.01 * expected)
          << name << ", " << options.stages << " stages, window " << options.window;
    }
  }
}

}  // namespace
}  // namespace gyre
