// The simulator against published formulas, hand-made examples and itself.
#include "gyre/simulate/simulator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/trace.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/grid.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Simulation run(const ScheduleOptions& options, int64_t microbatches, const CostModel& costs = uniform_costs(2)) {
  return simulate(make_schedule(options), costs, {.microbatches = microbatches});
}

TEST(Simulate, JsonHasWhatWasPromised) {
  const Json json = Json::parse(to_json(run({"gpipe", 4, 8}, 8)));
  EXPECT_EQ(json["schedule"], "gpipe");
  EXPECT_EQ(json["stages"], 4);
  EXPECT_EQ(json["pipelines"], 1);
  EXPECT_EQ(json["microbatches"], 8);
  EXPECT_EQ(json["makespan"], 33);
  EXPECT_NEAR(json["bubble_fraction"], 3.0 / 11, 1e-12);
  EXPECT_NEAR(json["utilisation"], 8.0 / 11, 1e-12);
  EXPECT_NEAR(json["microbatches_per_time"], 8.0 / 33, 1e-12);
  EXPECT_EQ(json["max_delay"], 0);
  EXPECT_EQ(json["max_mismatch"], 0);
  EXPECT_EQ(json["peak_memory_bytes"].size(), 4u);
  EXPECT_EQ(json["workers"].size(), 4u);
  for (const Json& worker : json["workers"]) EXPECT_EQ(worker["busy"].get<double>() + worker["idle"].get<double>(), 33);
}

// The costs of a whole backward are not those of its halves.
TEST(Simulate, ARunThatTakesNoTimeHasNoThroughput) {
  CostModel costs;
  costs.stages = {{.forward = 0, .backward = 2, .backward_input = 0, .backward_weights = 0}};
  costs.tokens_per_microbatch = 10;
  EXPECT_NO_THROW(parse_costs(to_json(costs), "costs.json"));
  const Simulation s = simulate(make_schedule({"zb-h1", 2, 4}), costs, {.microbatches = 4});
  EXPECT_EQ(s.makespan, 0);
  EXPECT_THAT(to_text(s), ::testing::HasSubstr("throughput   0 microbatches per unit of time\n"));
  EXPECT_THAT(to_json(s), ::testing::HasSubstr("\"microbatches_per_time\":0.0,"));
}

// The time of a stretch between checkpoints is multiplied, and so rounded in another way than the workers' times.
TEST(Simulate, NoWorkerIsBusyForLongerThanTheRun) {
  CostModel costs;
  costs.stages = {
      {.forward = 0.1, .backward = 0.37, .backward_input = 0.185, .backward_weights = 0.185, .update = 0.01}};
  for (int64_t windows = 1; windows <= 40; ++windows) {
    const Simulation s =
        simulate(make_schedule({"pipedream", 1, 3}), costs, {.microbatches = 3 * windows, .checkpoint_every = 1});
    EXPECT_LE(s.utilisation(), 1) << windows;
    EXPECT_THAT(to_text(s), ::testing::Not(::testing::HasSubstr(" -"))) << windows;
    EXPECT_THAT(to_text(s), ::testing::Not(::testing::HasSubstr("-0.0000"))) << windows;
    EXPECT_THAT(to_json(s), ::testing::Not(::testing::HasSubstr(":-"))) << windows;
  }
}

TEST(Simulate, UnequalStagesWaitForTheSlowest) {
  CostModel costs = uniform_costs(2);
  costs.stages.resize(3, costs.stages[0]);
  costs.stages[2].forward = 2;
  costs.stages[2].backward = 4;
  // The last stage takes 6 per microbatch and never waits once it has begun.
  const Simulation s = run({"pipedream", 3, 1}, 100, costs);
  EXPECT_EQ(s.makespan, 2 + 100 * 6 + 4);
  EXPECT_EQ(s.busy, (std::vector<double>{300, 300, 600}));
}

TEST(Simulate, MessagesTakeLatencyAndBandwidthAndQueue) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].output_bytes = 100;
  costs.link.latency = 0.5;
  costs.link.bandwidth = 50;  // 2 for one message
  // Two forwards end at 1 and 2; the link is free for the second at 3: it arrives at 5.5. Stage 1: F at 3.5, F at 5.5.
  const Schedule schedule = make_schedule({"gpipe", 2, 2});
  const Simulation s = simulate(schedule, costs, {.microbatches = 2, .trace = true});
  ASSERT_EQ(s.trace[1][0].action, parse_action("1F0", 1));
  EXPECT_EQ(s.trace[1][0].start, 3.5);
  EXPECT_EQ(s.trace[1][1].start, 5.5);
  // B0 from 6.5 to 8.5, its gradient is there at 11; B1 from 8.5 to 10.5, there at 13; both backwards of stage 0: 15.
  EXPECT_EQ(s.trace[0][2].start, 11);
  EXPECT_EQ(s.makespan, 15);
}

TEST(Simulate, UpdatesAndReductionsCost) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].update = 3;
  EXPECT_EQ(run({"1f1b", 2, 4}, 8, costs).makespan, 2 * (15 + 3));
  // Chimera: the gradient goes to the owner, the new weights come back.
  costs.stages[0].gradient_bytes = 10;
  costs.stages[0].weight_bytes = 20;
  costs.link.bandwidth = 10;
  const double free_links = run({"chimera", 2, 4}, 4).makespan;
  EXPECT_EQ(run({"chimera", 2, 4}, 4, costs).makespan, free_links + 1 + 3 + 2);
}

TEST(Simulate, ReplicasSendGradientsAndTakeWeights) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].update = 3;
  costs.stages[0].gradient_bytes = 10;
  costs.stages[0].weight_bytes = 20;
  costs.link = {.latency = 0.5, .bandwidth = 10};
  // Two microbatches each take 6; gradients are at the owner at 7.5, or go through one more replica by 9. Its update
  // ends 3 later, and the others have the weights another 2.5 later, when the first has begun the next window already.
  const auto gpipe = [](int replicas) {
    return ScheduleOptions{.name = "gpipe", .stages = 1, .window = 2, .replicas = replicas, .shard_optimizer = false};
  };
  for (const int replicas : {2, 3}) {
    const Simulation s = run(gpipe(replicas), 4LL * replicas, costs);
    EXPECT_EQ(s.busy.size(), static_cast<size_t>(replicas));
    EXPECT_EQ(s.busy[0], 2 * (6 + 3));
    EXPECT_EQ(s.busy[1], 2 * 6) << "no update of its own";
    EXPECT_EQ(s.makespan, replicas == 2 ? 13 + 13 : 14.5 + 14.5);
    EXPECT_EQ(s.max_delay, 0);
  }
  // A large gradient goes through many replicas in parts, so the time is not that of one after the other.
  costs.stages[0].gradient_bytes = int64_t{1} << 34;
  costs.link.bandwidth = 1e9;  // 17.2 for one gradient
  const double two = run(gpipe(2), 4, costs).makespan;
  const double many = run(gpipe(64), 128, costs).makespan;
  EXPECT_NEAR(many - two, 62 * (0.5 + 4.2e-3), 0.01);
  costs.link = {};
  ScheduleOptions pipedream{.name = "pipedream", .stages = 4, .window = 1, .replicas = 3, .shard_optimizer = false};
  EXPECT_EQ(run(pipedream, 60, costs).makespan, run({"pipedream", 4, 1}, 20, costs).makespan);
}

TEST(Simulate, ShardsOfAnUpdateRunSideBySide) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].update = 3;
  costs.stages[0].gradient_bytes = 15;
  costs.stages[0].weight_bytes = 30;
  costs.link = {.latency = 0.5, .bandwidth = 10};
  const Simulation s = simulate(make_schedule({"gpipe", 1, 2, 3}), costs, {.microbatches = 12, .trace = true});
  const auto found = [&](int worker, size_t index, const char* action, double start, double end) {
    EXPECT_EQ(s.trace[worker][index].action, parse_action(action, 3));
    EXPECT_DOUBLE_EQ(s.trace[worker][index].start, start) << action;
    EXPECT_DOUBLE_EQ(s.trace[worker][index].end, end) << action;
  };
  // Backwards end at 6. Replica 1's gradient goes through replica 2 to the first, 2 each, which sends shards on, 1.
  // At 11 the last owner has its shard, and all need each other's norms: these take 0.5 to the first and 0.5 back.
  found(0, 4, "0:0U0", 11.5, 12.5);
  found(1, 4, "1:0U0", 12, 13);
  found(2, 4, "2:0U0", 12, 13);
  // A shard of the version takes 1.5; nobody begins the next window without the last of them.
  for (const int worker : {0, 1, 2}) {
    EXPECT_EQ(s.trace[worker][5].action.kind, ActionKind::Adopt);
    EXPECT_DOUBLE_EQ(s.trace[worker][6].start, 14.5);
    EXPECT_DOUBLE_EQ(s.busy[worker], 2 * (6 + 1));
  }
  EXPECT_DOUBLE_EQ(s.makespan, 29);
}

TEST(Simulate, CostsMustBeOfTheSchedulesStages) {
  CostModel costs = uniform_costs(2);
  costs.stages.resize(3, costs.stages[0]);
  EXPECT_THROW(run({"gpipe", 4, 4}, 4, costs), InputError);
}

TEST(Simulate, MicrobatchesMustFillWindows) {
  try {
    run({"1f1b", 2, 4}, 10);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("simulate 8 or 12"));
  }
}

// A pipeline that drains after every second update never has more than one of its updates under way.
TEST(Simulate, DelaysAreThoseBetweenDrains) {
  const Schedule schedule = make_schedule({"pipedream", 8, 1});
  for (const auto& [every, delay] : std::map<int64_t, int64_t>{{0, 7}, {1, 0}, {2, 1}, {5, 4}, {8, 7}, {100, 7}}) {
    const Simulation s = simulate(schedule, uniform_costs(2), {.microbatches = 64, .checkpoint_every = every});
    EXPECT_EQ(s.max_delay, delay) << every;
    EXPECT_EQ(s.max_mismatch, delay) << every;
  }
}

// A minute and 3 GB for AMDP, less for the others.
TEST(Simulate, SlowDepthOf4096) {
  constexpr int kDepth = 4096;
  for (const ScheduleKind& kind : schedule_kinds().all()) {
    ScheduleOptions options;
    options.name = kind.name;
    options.stages = kDepth;
    options.own = kind.own;
    options.window = kind.windows(options).usual;
    const Schedule schedule = make_schedule(options);
    const bool has_flush = schedule.has_flush();
    const int64_t microbatches = (has_flush ? 1 : 8) * schedule.window;
    const Simulation simulation = simulate(schedule, uniform_costs(2), {.microbatches = microbatches});
    EXPECT_EQ(simulation.stages, kDepth) << kind.name;
    EXPECT_EQ(simulation.memory.size(), static_cast<size_t>(schedule.workers)) << kind.name;
    // Every worker does what the microbatches need, 3 for each of its stages, and no worker can do more in the time.
    for (const double busy : simulation.busy) {
      EXPECT_EQ(busy, 3.0 * static_cast<double>(microbatches) * kDepth / schedule.workers) << kind.name;
      EXPECT_LE(busy, simulation.makespan) << kind.name;
    }
    EXPECT_EQ(has_flush, simulation.max_delay == 0) << kind.name;
  }
}

// Random sizes of every schedule are valid, end in the simulator, and lose no work.
TEST(Property, RandomSizesEndWithAllWorkDone) {
  std::mt19937 random(7);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int served = 0;
  for (int trial = 0; trial < 400; ++trial) {
    ScheduleOptions options;
    const auto names = schedule_names();
    options.name = names[static_cast<size_t>(between(0, static_cast<int>(names.size()) - 1))];
    options.stages = between(1, 12);
    options.window = between(1, 64);
    if (options.name == "interleaved-1f1b") options.own = InterleavedSettings{.chunks = between(1, 3)};
    if (options.name == "amdp") options.own = AmdpSettings{.pipelines = between(0, 4), .intake = between(1, 3)};
    options.tb_over_tf = 0.5 + 0.25 * between(0, 12);
    Schedule schedule;
    try {
      schedule = make_schedule(options);
    } catch (const InputError&) {
      continue;  // the schedule refuses these sizes
    }
    ++served;
    validate(schedule);
    const int64_t n = 3 * schedule.shift;
    const Simulation s = simulate(schedule, uniform_costs(options.tb_over_tf), {.microbatches = n});
    double busy = 0;
    for (double seconds : s.busy) busy += seconds;
    EXPECT_NEAR(busy, static_cast<double>(n * schedule.stages) * (1 + options.tb_over_tf), 1e-6 * busy) << options.name;
    EXPECT_LE(s.utilisation(), 1 + 1e-9);
  }
  EXPECT_GT(served, 150);
}

TEST(Simulate, CostGrowsLinearlyInActions) {
  // This checks a count, not a time: every action is visited once.
  const Schedule schedule = make_schedule({"amdp", 8, 8});
  for (const int64_t n : {80, 160, 320}) {
    int64_t visits = 0;
    ComputeCosts costs;
    const auto count = [&](int, const Action& action, double, double) { visits += !action.is_per_window(); };
    Timeline(schedule, n, costs, count).run();
    EXPECT_EQ(visits, n * 8 * 2);
  }
}

// The prologue of a deep pipeline has millions of actions, of which a short run does few.
TEST(Simulate, AShortRunOfADeepPipelineCanBeTraced) {
  const Schedule schedule = make_schedule({"pipedream", 2100, 1});
  EXPECT_LE(count_actions(schedule, 2), 2 * 4 * 2100);
  const Simulation s = simulate(schedule, uniform_costs(2), {.microbatches = 2, .trace = true});
  EXPECT_EQ(s.trace[2099].size(), 6u);
}

TEST(Grid, DrawsATinySchedule) {
  EXPECT_EQ(to_grid(make_schedule({"1f1b", 2, 2}), 2, 2),
            "worker 0   0F0 0F1 .   .   0B0 --- .   0B1 ---\n"
            "worker 1   .   1F0 1B0 --- 1F1 1B1 --- .   .\n");
}

TEST(Trace, IsWellFormedAndItsArrowsMeet) {
  const Schedule schedule = make_schedule({"amdp", 4, 4});
  const Simulation s = simulate(schedule, uniform_costs(2), {.microbatches = 12, .trace = true});
  const testing_support::TemporaryDirectory directory;
  const auto path = directory / "trace.json";
  write_trace(path, schedule, s.trace);
  const Json json = Json::parse(read_file(path));
  std::map<int, double> end_of_track;
  std::map<std::string, int> starts, finishes;
  int slices = 0;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "X") {
      ++slices;
      // Slices of one track do not overlap.
      EXPECT_GE(event["ts"].get<double>(), end_of_track[event["tid"]] - 1e-3);
      end_of_track[event["tid"]] = event["ts"].get<double>() + event["dur"].get<double>();
    }
    if (phase == "s") ++starts[event["id"]];
    if (phase == "f") ++finishes[event["id"]];
  }
  EXPECT_EQ(starts, finishes);
  EXPECT_EQ(starts.size(), 12u * 3 * 2);  // three hops up, three down
  for (const auto& [id, count] : starts) EXPECT_EQ(count, 1) << id;
  EXPECT_EQ(slices, 12 * 4 * 2 + 3 * 4 + 3 * 8);
}

}  // namespace
}  // namespace gyre
