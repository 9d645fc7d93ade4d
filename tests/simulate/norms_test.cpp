// Updates that wait for each other, because owners clip by a common norm: their times against what they wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

constexpr double kLatency = 0.25;

CostModel unequal_costs(int stages, unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&] { return std::uniform_int_distribution<int>(4, 16)(random) / 8.0; };
  CostModel costs = uniform_costs(2);
  costs.link.latency = kLatency;
  costs.stages.resize(static_cast<size_t>(stages), costs.stages[0]);
  for (StageCost& stage : costs.stages) {
    stage.forward = draw();
    stage.backward_input = draw();
    stage.backward_weights = draw();
    stage.backward = stage.backward_input + stage.backward_weights;
    stage.update = draw();
  }
  return costs;
}

double between(int from, int to) {
  return from == to ? 0 : kLatency;
}

bool ends_gradient(const Action& action) {
  return action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights;
}

// [window, stage]: when the owner has the gradients of all pipelines, each of which sends its own.
std::map<std::pair<int64_t, int>, double> complete_gradients(const Schedule& schedule, const Simulation& simulation) {
  std::map<std::pair<int64_t, int>, double> complete;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    for (const TimedAction& timed : simulation.trace[worker]) {
      const Action& action = timed.action;
      if (!ends_gradient(action)) continue;
      double& time = complete[{action.microbatch / schedule.window, action.stage}];
      time = std::max(time, timed.end + between(worker, schedule.owner[0][action.stage]));
    }
  }
  return complete;
}

TEST(Norms, OfTheWholeModelAreAwaitedByEveryUpdate) {
  unsigned seed = 0;
  for (const ScheduleOptions& options : {ScheduleOptions{.name = "gpipe", .stages = 4, .window = 6},
                                         ScheduleOptions{.name = "1f1b", .stages = 4, .window = 6},
                                         ScheduleOptions{.name = "1f1b", .stages = 3, .window = 4, .tied = true},
                                         ScheduleOptions{.name = "interleaved-1f1b", .stages = 6, .window = 6},
                                         ScheduleOptions{.name = "zb-h1", .stages = 4, .window = 7},
                                         ScheduleOptions{.name = "zb-v", .stages = 6, .window = 7},
                                         ScheduleOptions{.name = "dualpipe-v", .stages = 6, .window = 7},
                                         ScheduleOptions{.name = "chimera", .stages = 4, .window = 8}}) {
    Schedule schedule = make_schedule(options);
    set_clip_scope(schedule, ClipScope::Auto);
    ASSERT_TRUE(schedule.global_norm) << options.name;
    const CostModel costs = unequal_costs(options.stages, ++seed);
    const int64_t windows = 4;
    const Simulation s = simulate(schedule, costs, {.microbatches = windows * schedule.window, .trace = true});

    const auto complete = complete_gradients(schedule, s);
    std::vector<double> norm(static_cast<size_t>(windows));  // [window]: when the first stage's owner has all
    const int adds = schedule.owner[0][0];
    for (const auto& [place, time] : complete) {
      double& last = norm[static_cast<size_t>(place.first)];
      const bool is_first = place.second == 0;
      // The first stage's gradient of a tied weight waits for the last stage's.
      const double sum =
          is_first && options.tied ? std::max(time, complete.at({place.first, options.stages - 1}) + kLatency) : time;
      last = std::max(last, sum + between(schedule.owner[0][place.second], adds));
    }
    int updates = 0;
    for (int worker = 0; worker < schedule.workers; ++worker) {
      double free_at = 0;
      for (const TimedAction& timed : s.trace[worker]) {
        if (timed.action.kind == ActionKind::Update) {
          const double known = norm[static_cast<size_t>(timed.action.microbatch)] + between(adds, worker);
          EXPECT_DOUBLE_EQ(timed.start, std::max(free_at, known)) << options.name << ", worker " << worker;
          ++updates;
        }
        free_at = timed.end;
      }
    }
    EXPECT_EQ(updates, windows * schedule.stages) << options.name;
  }
}

// Without a common norm a worker of these schedules begins the next window while others are still in this one.
TEST(Norms, KeepWindowsApart) {
  for (const char* name : {"zb-h1", "zb-v", "dualpipe-v"}) {
    Schedule schedule = make_schedule({.name = name, .stages = 8, .window = 12});
    CostModel costs = uniform_costs(2);
    costs.stages.resize(8, costs.stages[0]);
    for (const int stage : schedule.workers == 8 ? std::vector{7} : std::vector{3, 4}) {  // those of the last worker
      costs.stages[static_cast<size_t>(stage)].backward_weights = costs.stages[static_cast<size_t>(stage)].forward =
          1.5;
      costs.stages[static_cast<size_t>(stage)].backward = 2.5;
    }
    const auto makespan = [&](ClipScope scope, int64_t windows) {
      set_clip_scope(schedule, scope);
      return simulate(schedule, costs, {.microbatches = windows * schedule.window}).makespan;
    };
    EXPECT_EQ(makespan(ClipScope::Global, 1), makespan(ClipScope::Stage, 1)) << name;
    EXPECT_DOUBLE_EQ(makespan(ClipScope::Global, 5), 5 * makespan(ClipScope::Global, 1)) << name;
    EXPECT_LT(makespan(ClipScope::Stage, 5), 0.999 * makespan(ClipScope::Global, 5)) << name;
  }
}

TEST(Norms, GoOverTheClustersLinks) {
  Cluster cluster;
  cluster.settings.within_host = "fast";
  cluster.settings.between_hosts = "slow";
  cluster.links = {{"fast", 1e-3, 1e9}, {"slow", 0.5, 1e9}};
  cluster.hosts = {{.name = "a", .workers = 2}, {.name = "b", .workers = 2}};
  const Schedule schedule = make_schedule({.name = "1f1b", .stages = 4, .window = 4, .clip_scope = ClipScope::Global});
  const WorkerPlaces places(cluster, schedule.workers);
  const CostModel costs = uniform_costs(2);
  const Simulation s = simulate(schedule, costs, {.microbatches = 4, .trace = true, .places = &places});
  // The first stage's gradient is the last to be complete. The others are told on their links.
  const double last = s.trace[0].back().start;
  EXPECT_DOUBLE_EQ(s.trace[1].back().start, last + 1e-3);
  EXPECT_DOUBLE_EQ(s.trace[2].back().start, last + 0.5);
  EXPECT_DOUBLE_EQ(s.trace[3].back().start, last + 0.5);
}

// The one pipeline's gradients go to another worker, which has nothing else to do.
TEST(Updates, OfAnOwnerElsewhereWaitForTheGradient) {
  const Schedule schedule = parse_schedule(
      "gyre-schedule 1\nname elsewhere\nstages 2\npipelines 1\nworkers 3\nwindow 2\nshift 2\nkind training\n"
      "weights stash\nplacement 0 1\nowner 2 2\nworker 0: 0F0 0F1 0B0 0B1 0A0\nworker 1: 1F0 1B0 1F1 1B1 1A0\n"
      "worker 2: 1U0 0U0\n",
      "here");
  validate(schedule);
  CostModel costs = uniform_costs(2);
  costs.stages[0].update = 3;
  costs.stages[0].gradient_bytes = 10;
  costs.stages[0].weight_bytes = 20;
  costs.link.bandwidth = 10;
  const Simulation s = simulate(schedule, costs, {.microbatches = 4, .trace = true});
  // Stage 1's backwards end at 7, and its gradient arrives at 8; stage 0's at 9, and at 10.
  EXPECT_EQ(s.trace[2][0].start, 8);
  EXPECT_EQ(s.trace[2][1].start, 11);
  EXPECT_EQ(s.trace[1][4].start, 13) << "its version";
  EXPECT_EQ(s.trace[0][4].start, 16);
  EXPECT_EQ(s.makespan, 32);
}

}  // namespace
}  // namespace gyre
