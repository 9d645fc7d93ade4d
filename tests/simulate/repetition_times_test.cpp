// Tests when a timeline that is watched ends, and how long it finds that repetitions take in the end.
#include "gyre/simulate/repetition_times.h"

#include <gtest/gtest.h>

#include "gyre/schedule/builders.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/simulator.h"
#include "random_schedules.h"

namespace gyre {
namespace {

CostModel costs_of(int stages) {
  CostModel costs;
  costs.link = {0.1, 500};
  for (int stage = 0; stage < stages; ++stage) {
    StageCost cost;
    cost.forward = 1 + 0.25 * (stage % 3);
    cost.backward = 2;
    cost.backward_input = cost.backward_weights = 1;
    cost.update = 0.5;
    cost.output_bytes = 100;
    cost.weight_bytes = 50;
    cost.gradient_bytes = 100;
    costs.stages.push_back(cost);
  }
  return costs;
}

TEST(RepetitionTimes, EndARunAsIfItHadBeenThatShort) {
  for (const ScheduleKind& kind : schedule_kinds().all()) {
    for (const bool tied : {false, true}) {
      const Schedule schedule =
          make_schedule({.name = kind.name, .stages = 4, .window = 8, .replicas = 2, .tied = tied});
      const CostModel costs = costs_of(schedule.stages);
      RepetitionTimes repetitions(schedule);
      SimulationOptions options{.microbatches = 1000 * schedule.shift, .links = true};
      options.repetitions = &repetitions;
      const Simulation ended = simulate(schedule, costs, options);
      ASSERT_TRUE(repetitions.steady()) << kind.name;
      EXPECT_LT(ended.microbatches, 100 * schedule.shift) << kind.name;

      const Simulation as_short = simulate(schedule, costs, {.microbatches = ended.microbatches, .links = true});
      EXPECT_EQ(ended.makespan, as_short.makespan) << kind.name;
      EXPECT_EQ(ended.busy, as_short.busy) << kind.name;
      ASSERT_EQ(ended.links.size(), as_short.links.size()) << kind.name;
      for (size_t link = 0; link < ended.links.size(); ++link) {
        EXPECT_EQ(ended.links[link].total(), as_short.links[link].total()) << kind.name;
      }
    }
  }
}

TEST(RepetitionTimes, ARunThatIsTooShortShowsNothing) {
  const Schedule schedule = make_schedule({.name = "pipedream", .stages = 4, .window = 1});
  RepetitionTimes repetitions(schedule);
  SimulationOptions options{.microbatches = 4};
  options.repetitions = &repetitions;
  EXPECT_EQ(simulate(schedule, costs_of(4), options).microbatches, 4);
  EXPECT_FALSE(repetitions.steady());
  EXPECT_EQ(repetitions.limit(), kUnlimited);
}

// Nothing holds up the first worker. Its messages wait for each other longer and longer.
TEST(RepetitionTimes, TheLastLinkDecides) {
  const Schedule schedule = build_forward_only(make_schedule({.name = "pipedream", .stages = 2, .window = 1}));
  CostModel costs = uniform_costs(2);
  costs.link = {0.1, 500};
  costs.stages[0].output_bytes = 750;
  RepetitionTimes repetitions(schedule);
  SimulationOptions options{.microbatches = 1000};
  options.repetitions = &repetitions;
  simulate(schedule, costs, options);
  ASSERT_TRUE(repetitions.steady());
  EXPECT_NEAR(*repetitions.steady() / static_cast<double>(schedule.shift), 1.5, 1e-9);
}

// Worker 2 takes messages from workers 0 and 1 by turns. Those from worker 1 come late, those from worker 0 ever later:
// their link limits the rate in the end, but for 200 repetitions nothing waits for it.
TEST(RepetitionTimes, SeeQueuesThatNothingWaitsForYet) {
  const auto forward = [](int pipeline, int stage) { return Action{ActionKind::Forward, pipeline, stage, pipeline}; };
  Schedule schedule;
  schedule.name = "two-to-one";
  schedule.stages = schedule.pipelines = 2;
  schedule.workers = 3;
  schedule.window = schedule.shift = 2;
  schedule.forward_only = true;
  schedule.placement = {{0, 2}, {1, 2}};
  schedule.owner = {{0, 2}};
  schedule.programs = {{{}, {forward(0, 0)}}, {{}, {forward(1, 0)}}, {{}, {forward(0, 1), forward(1, 1)}}};
  CostModel costs = uniform_costs(1);
  costs.stages = {costs.stages[0], costs.stages[0]};
  costs.stages[0].output_bytes = 150;
  costs.stages[1].forward = 0.25;
  Cluster cluster;
  cluster.settings.within_host = "late";
  cluster.settings.between_hosts = "slow";
  cluster.links = {{"late", 100, 1e9}, {"slow", 0, 100}};
  cluster.hosts = {{.name = "a", .workers = 1}, {.name = "b", .workers = 2}};
  const WorkerPlaces places(cluster, 3);
  RepetitionTimes repetitions(schedule);
  SimulationOptions options{.microbatches = 2000, .places = &places};
  options.repetitions = &repetitions;
  const int64_t microbatches = simulate(schedule, costs, options).microbatches;
  ASSERT_TRUE(repetitions.steady());
  EXPECT_NEAR(*repetitions.steady(), 1.5, 1e-9);
  EXPECT_LT(microbatches, 100);
}

// Eight microbatches follow each other closely. Then both workers wait for a message that has long been underway.
TEST(RepetitionTimes, AFewThatTakeTheSameTimeAreNotEnough) {
  const auto action = [](ActionKind kind, int stage, int64_t number) { return Action{kind, 0, stage, number}; };
  Schedule schedule;
  schedule.name = "eight-in-flight";
  schedule.stages = schedule.workers = 2;
  schedule.placement = schedule.owner = {{0, 1}};
  schedule.programs.resize(2);
  for (int64_t m = 0; m < 8; ++m) schedule.programs[0].prologue.push_back(action(ActionKind::Forward, 0, m));
  schedule.programs[0].period = {action(ActionKind::Backward, 0, 0), action(ActionKind::Update, 0, 0),
                                 action(ActionKind::Forward, 0, 8)};
  schedule.programs[1].period = {action(ActionKind::Forward, 1, 0), action(ActionKind::Backward, 1, 0),
                                 action(ActionKind::Update, 1, 0)};
  validate(schedule);
  CostModel costs = uniform_costs(2);
  costs.link.latency = 100;
  RepetitionTimes repetitions(schedule);
  SimulationOptions options{.microbatches = 400};
  options.repetitions = &repetitions;
  EXPECT_NEAR(simulate(schedule, costs, options).makespan, 50 * (2 * 100 + 2 * 3), 3 * 8);
  EXPECT_FALSE(repetitions.steady());
}

void compare_random(int draws, unsigned seed) {
  RandomSchedules random(seed);
  int shown = 0;
  for (int draw = 0; draw < draws; ++draw) {
    Schedule schedule = random.schedule();
    const CostModel costs = random.costs(schedule.stages);
    if (random.between(0, 4) == 0) schedule = replicated(schedule, 2, /*shard_optimizer=*/random.between(0, 1) == 1);
    RepetitionTimes repetitions(schedule);
    SimulationOptions options{.microbatches = 100 * schedule.shift};
    options.repetitions = &repetitions;
    simulate(schedule, costs, options);
    if (!repetitions.steady()) continue;
    ++shown;
    options.repetitions = nullptr;
    const double before = simulate(schedule, costs, options).makespan;
    options.microbatches *= 2;
    const double expected = (simulate(schedule, costs, options).makespan - before) / 100;
    EXPECT_NEAR(*repetitions.steady(), expected, 1e-6 * expected) << "draw " << draw;
  }
  EXPECT_GT(shown, 0.9 * draws);
}

TEST(RepetitionTimes, OfRandomSchedulesAreThoseOfALongRun) {
  compare_random(1000, 3);
}
TEST(RepetitionTimes, SlowOfManyRandomSchedulesAreThoseOfALongRun) {
  compare_random(50'000, 4);
}

}  // namespace
}  // namespace gyre
