// The simulator against published formulas, hand-made examples and itself.
#include "gyre/simulate/simulator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/trace.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
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

TEST(Simulate, MicrobatchesMustFillWindows) {
  try {
    run({"1f1b", 2, 4}, 10);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("simulate 8 or 12"));
  }
}

CostModel memory_costs() {
  CostModel costs = uniform_costs(2);
  costs.stages[0].activation_bytes = 1;
  costs.stages[0].weight_bytes = 1000;
  costs.stages[0].gradient_bytes = 1000000;
  costs.stages[0].optimizer_bytes = 1000000000;
  return costs;
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

TEST(Memory, FollowsThePublishedTable) {
  const CostModel costs = memory_costs();
  const auto memory = [&](const ScheduleOptions& options) {
    const Schedule schedule = make_schedule(options);
    return peak_memory(schedule, costs, schedule.weights);
  };
  for (const int d : {2, 4, 8}) {
    const auto gpipe = memory({"gpipe", d, 16}), flush = memory({"1f1b", d, 16}), dream = memory({"pipedream", d, 1}),
               two = memory({"pipedream-2bw", d, d}), paci = memory({"paci", d, 2}), amdp = memory({"amdp", d, d}),
               chimera = memory({"chimera", d, d});
    for (int stage = 0; stage < d; ++stage) {
      EXPECT_EQ(gpipe[stage].activations, 16);
      EXPECT_EQ(gpipe[stage].weights, 1000);
      EXPECT_EQ(flush[stage].activations, d - stage);
      EXPECT_EQ(dream[stage].activations, d - stage);
      EXPECT_EQ(dream[stage].weights, 1000 * (d - stage));  // d - i versions
      EXPECT_EQ(two[stage].weights, 2000);                  // two versions
      EXPECT_EQ(paci[stage].weights, 1000);
      // Half the model on every worker, whatever the depth. A single pipeline has a version that is yet to be adopted.
      EXPECT_EQ(amdp[stage].weights, d == 2 ? 2000 : 1000 * (d / 2));
      EXPECT_GE(amdp[stage].activations, d - 1);
      EXPECT_LE(amdp[stage].activations, d + 1);
      EXPECT_EQ(amdp[stage].optimizer, 1000000000);  // one stage's: 2/d of the replicated d/2
      EXPECT_EQ(chimera[stage].weights, 2000);
      EXPECT_LE(chimera[stage].activations, d);
    }
    // Fewer pipelines need less memory.
    for (int k = 1; k <= d / 2; ++k) {
      const auto fewer = memory({.name = "amdp", .stages = d, .window = 2 * k, .own = AmdpSettings{.pipelines = k}});
      for (const WorkerMemory& worker : fewer) EXPECT_LE(worker.weights, k == 1 ? 2000 : 1000 * k);
    }
  }
}

TEST(Memory, OfReplicasIsThatOfOneAndAGradientOnItsWay) {
  const CostModel costs = memory_costs();
  for (const char* name : {"1f1b", "pipedream", "amdp"}) {
    const auto one = run({name, 4, 4}, 16, costs).memory, all = run({name, 4, 4, 3}, 48, costs).memory;
    const auto first_updates =
        run({.name = name, .stages = 4, .window = 4, .replicas = 3, .shard_optimizer = false}, 48, costs).memory;
    ASSERT_EQ(all.size(), 12u);
    for (size_t worker = 0; worker < all.size(); ++worker) {
      const WorkerMemory& same = one[worker % 4];
      EXPECT_EQ(all[worker].weights, same.weights) << name;
      EXPECT_EQ(all[worker].activations, same.activations) << name;
      EXPECT_EQ(all[worker].optimizer, same.optimizer / 3) << name;
      EXPECT_EQ(first_updates[worker].optimizer, worker < 4 ? same.optimizer : 0) << name;
      // The second replica begins the chain; the third and then the first receive what it sends.
      const int64_t pipelines = std::string(name) == "amdp" ? 2 : 1;
      EXPECT_EQ(all[worker].gradients, same.gradients) << name;
      // Owners also receive their shards of what a chain's last replica has added up, unless that is on their worker.
      const int64_t elsewhere = pipelines - (worker < 4 ? 1 : 0);
      EXPECT_EQ(all[worker].received, (worker / 4 == 1 ? 0 : pipelines * 1000000) + elsewhere * (1000000 / 3)) << name;
    }
  }
}

TEST(Memory, EachOfAWorkersStagesHasItsOwnVersionsAndSizes) {
  // The first stage keeps two versions, the second one; the period begins with the second.
  const Schedule schedule = parse_schedule(
      "gyre-schedule 1\nname both\nstages 2\npipelines 1\nworkers 1\nwindow 1\nshift 1\nkind training\nweights stash\n"
      "placement 0 0\nowner 0 0\nworker 0: 0F0 | 1F0 1B0 1U0 0F1 0B0 0U0\n",
      "both");
  validate(schedule);
  CostModel costs = uniform_costs(2);
  costs.stages.resize(2, costs.stages[0]);
  costs.stages[0].weight_bytes = 100;
  costs.stages[1].weight_bytes = 1;
  EXPECT_EQ(peak_memory(schedule, costs, schedule.weights)[0].weights, 2 * 100 + 1);
}

// Where a window's gradients begin while the most microbatches are in flight, they take the place of activations.
TEST(Memory, GradientsThatStayWholeTakeThePlaceOfActivations) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].activation_bytes = 1000;
  costs.stages[0].gradient_bytes = 500;
  costs.stages[0].passing_bytes = 10;
  costs.stages[0].replaced_bytes = 300;
  const auto of = [&](const ScheduleOptions& options, size_t worker) {
    const Schedule schedule = make_schedule(options);
    return peak_memory(schedule, costs, schedule.weights)[worker];
  };
  EXPECT_EQ(of({"pipedream", 2, 1}, 0).activations, 2000 - 300);
  EXPECT_EQ(of({"pipedream", 2, 1}, 0).total(), 2000 - 300 + 500 + 10);
  EXPECT_EQ(of({"pipedream", 2, 1}, 1).activations, 1000 - 300);
  EXPECT_EQ(of({"1f1b", 2, 2}, 0).activations, 2000 - 300) << "one microbatch less is there in the second backward";
  EXPECT_EQ(of({"1f1b", 2, 2}, 1).activations, 1000) << "the second backward finds the gradient there";
  EXPECT_EQ(of({"zb-h1", 2, 2}, 0).activations, of({"1f1b", 2, 2}, 0).activations + 300) << "halves come apart";
  EXPECT_EQ(of({"pipedream", 2, 1, 2}, 0).activations, 2000) << "replicas add flat gradients";
  costs.stages[0].replaced_bytes = 5000;
  EXPECT_EQ(of({"pipedream", 2, 1}, 0).total(), 2000 + 10) << "as much is there at a forward, without gradients";
}

// An update may be on another worker than the gradient, or come late: the saving is between 0 and replaced_bytes.
TEST(Memory, OwnersElsewhereChangeNothingOfWhatGradientsReplace) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].activation_bytes = 1000;
  costs.stages[0].gradient_bytes = 500;
  costs.stages[0].replaced_bytes = 300;
  const auto of = [&](const std::string& owners, const std::string& first, const std::string& second) {
    const Schedule schedule = parse_schedule(
        "gyre-schedule 1\nname swapped\nstages 2\npipelines 1\nworkers 2\nwindow 1\nshift 1\nkind training\n"
        "weights stash\nplacement 0 1\nowner " +
            owners + "\nworker 0: " + first + "\nworker 1: " + second + "\n",
        "swapped");
    return peak_memory(schedule, costs, schedule.weights);
  };
  for (const auto& memory :
       {of("0 1", "0F0 | 0F1 0B0 0U0", "| 1F0 1B0 1U0"), of("1 0", "0F0 | 0F1 0B0 1U0", "| 1F0 1B0 0U0")}) {
    EXPECT_EQ(memory[0].activations, 2000 - 300);
    EXPECT_EQ(memory[1].activations, 1000 - 300);
  }
}

// The last stage's backward holds much at a time when the first stage has only one of its two microbatches in flight.
TEST(Memory, WhatAnActionHoldsCountsWithWhatIsInFlightThen) {
  const Schedule schedule = parse_schedule(
      "gyre-schedule 1\nname both\nstages 2\npipelines 1\nworkers 1\nwindow 1\nshift 1\nkind training\nweights stash\n"
      "placement 0 0\nowner 0 0\nworker 0: 0F0 | 1F0 1B0 1U0 0F1 0B0 0U0\n",
      "both");
  CostModel costs = uniform_costs(2);
  costs.stages.resize(2, costs.stages[0]);
  costs.stages[0].activation_bytes = 100;
  costs.stages[1].activation_bytes = 1;
  const auto of = [&](int64_t passing) {
    costs.stages[1].passing_bytes = passing;
    return peak_memory(schedule, costs, schedule.weights)[0];
  };
  EXPECT_EQ(of(0).activations, 200);
  EXPECT_EQ(of(50).passing, 0) << "100 + 1 + 50 is less than two microbatches of the first stage";
  EXPECT_EQ(of(150).activations, 200);
  EXPECT_EQ(of(150).passing, 100 + 1 + 150 - 200);
}

TEST(Memory, WhatIsHeldBetweenTheHalvesOfABackwardIsHeldThen) {
  const auto of = [](const std::string& program) {
    const Schedule schedule = parse_schedule(
        "gyre-schedule 1\nname halves\nstages 1\npipelines 1\nworkers 1\nwindow 2\nshift 2\nkind training\n"
        "weights stash\nplacement 0\nowner 0\nworker 0: | " +
            program + " 0U0\n",
        "halves");
    CostModel costs = uniform_costs(2);
    costs.stages[0].activation_bytes = 100;
    costs.stages[0].split_bytes = 40;
    costs.stages[0].passing_bytes = 50;
    return peak_memory(schedule, costs, schedule.weights)[0].total();
  };
  EXPECT_EQ(of("0F0 0I0 0W0 0F1 0I1 0W1"), 100 + 50);
  EXPECT_EQ(of("0F0 0F1 0I0 0W0 0I1 0W1"), 200 + 50);
  EXPECT_EQ(of("0F0 0F1 0I0 0I1 0W0 0W1"), 200 + 40 + 50);
}

// A replica that adopts reads the old version when its owner has made the next one.
TEST(Memory, AVersionToBeAdoptedIsThereBesideTheOneBefore) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].weight_bytes = 100;
  const auto of = [&](const ScheduleOptions& options, size_t worker) {
    const Schedule schedule = make_schedule(options);
    return peak_memory(schedule, costs, schedule.weights)[worker].weights;
  };
  EXPECT_EQ(of({"pipedream-2bw", 2, 2}, 1), 2 * 100);
  EXPECT_EQ(of({"pipedream", 2, 1}, 1), 100);
}

// After a backward one microbatch less is in flight.
TEST(Memory, WhatAnUpdateHoldsCountsWithWhatIsInFlightThen) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].activation_bytes = 1000;
  const auto of = [&](const ScheduleOptions& options, size_t worker, int64_t update) {
    costs.stages[0].update_bytes = update;
    const Schedule schedule = make_schedule(options);
    return peak_memory(schedule, costs, schedule.weights)[worker];
  };
  EXPECT_EQ(of({"pipedream", 2, 1}, 0, 900).total(), 2000);
  EXPECT_EQ(of({"pipedream", 2, 1}, 0, 1500).total(), 1000 + 1500);
  EXPECT_EQ(of({"pipedream", 2, 1}, 1, 1500).total(), 1500);
  EXPECT_EQ(of({"1f1b", 2, 2}, 0, 1500).total(), 2000) << "all have been through";
  costs.stages[0].gradient_bytes = 500;
  costs.stages[0].replaced_bytes = 500;
  EXPECT_EQ(of({"pipedream", 2, 1}, 0, 0).total(), 2000);
  EXPECT_EQ(of({"pipedream", 2, 1}, 0, 1500).total(), 1000 + 1500 + 500) << "the gradients are there still";
}

// The most that a worker holds, counted action by action through a long run.
WorkerMemory count_memory(const Schedule& schedule, int worker, WeightPolicy weights) {
  struct Replica {
    std::map<int64_t, int64_t> read, gradients;  // by microbatch in flight: version; by open window: how many are in
    int64_t current = 0, most_versions = 1, most_windows = 0;
    void count_versions(std::set<int64_t> versions) {
      for (const auto& [microbatch, version] : read) versions.insert(version);
      most_versions = std::max(most_versions, std::ssize(versions));
    }
  };
  std::map<std::pair<int, int>, Replica> replicas;
  const ReplicaNumbers numbers(schedule);
  VersionTracker tracker(schedule, numbers, worker);
  WorkerMemory memory;
  int64_t activations = 0;
  const int64_t microbatches = 2 * representative_microbatches(schedule);
  for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
    const auto [kind, pipeline, stage, number] = *cursor.peek();
    int64_t version = tracker.track(*cursor.peek());
    if (kind == ActionKind::Adopt) ++version;
    if (kind == ActionKind::Update) {
      memory.optimizer += number == 0 ? 1'000'000'000 : 0;
      if (schedule.pipelines > 1 || !adopting_pipelines(schedule)[0]) continue;
      Replica& replica = replicas[{0, stage}];
      replica.count_versions({replica.current, version + 1});
      continue;
    }
    Replica& replica = replicas[{pipeline, stage}];
    if (kind == ActionKind::Forward) {
      if (!reads_latest(weights)) replica.read[number] = version;
      memory.activations = std::max(memory.activations, ++activations);
    }
    if (kind == ActionKind::Backward || kind == ActionKind::BackwardInput) replica.read.erase(number);
    if (kind == ActionKind::Backward || kind == ActionKind::BackwardWeights) {
      --activations;
      const int64_t window = number / schedule.window;
      ++replica.gradients[window];
      replica.most_windows = std::max(replica.most_windows, std::ssize(replica.gradients));
      if (replica.gradients[window] == schedule.microbatches_in_window(pipeline, window))
        replica.gradients.erase(window);
    }
    replica.current = version;
    replica.count_versions({version});
  }
  for (const auto& [place, replica] : replicas) {
    memory.weights += 1000 * replica.most_versions;
    memory.gradients += 1'000'000 * replica.most_windows;
  }
  return memory;
}

TEST(Memory, IsThatOfALongRun) {
  for (const std::string& name : schedule_names()) {
    for (const int stages : {2, 4, 8}) {
      for (const int64_t window : {stages, 2 * stages, 6 * stages}) {
        const Schedule schedule = make_schedule({name, stages, window});
        for (const WeightPolicy weights : {WeightPolicy::Stash, WeightPolicy::Latest}) {
          const std::vector<WorkerMemory> peak = peak_memory(schedule, memory_costs(), weights);
          for (int worker = 0; worker < schedule.workers; ++worker) {
            const WorkerMemory counted = count_memory(schedule, worker, weights);
            const std::string what = fmt::format("{}, {} stages, window {}, worker {}", name, stages, window, worker);
            EXPECT_EQ(peak[worker].weights, counted.weights) << what;
            EXPECT_EQ(peak[worker].gradients, counted.gradients) << what;
            EXPECT_EQ(peak[worker].optimizer, counted.optimizer) << what;
            EXPECT_EQ(peak[worker].activations, counted.activations) << what;
          }
        }
      }
    }
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

TEST(CostModel, JsonComesBackTheSame) {
  CostModel costs = uniform_costs(2);
  costs.stages.resize(2, costs.stages[0]);
  costs.stages[1].forward = 0.1234567890123;
  costs.stages[1].optimizer_bytes = int64_t{1} << 40;
  costs.link = {1e-5, 2.5e10};
  costs.tokens_per_microbatch = 4096;
  costs.stages[1].weight_bytes = (int64_t{1} << 60) + 1;  // not representable as a double
  EXPECT_EQ(parse_costs(to_json(costs), "memory"), costs);
}

TEST(CostModel, ErrorsSayWhatIsWrong) {
  const auto message = [](const std::string& json) -> std::string {
    try {
      parse_costs(json, "c.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto with = [](const std::string& rest) { return R"({"format":"gyre-costs 1",)" + rest + "}"; };
  EXPECT_THAT(message("{\n\"stages\": [}\n"), HasSubstr("not JSON at line 2"));
  EXPECT_THAT(message("{}"), HasSubstr("gyre-costs 1"));
  EXPECT_THAT(message(with(R"("stages":[])")), HasSubstr("one entry for each stage"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1}])")), HasSubstr("stages[0]: forward and backward are needed"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":-1,"backward":2}])")), HasSubstr("'forward' is -1; give 0 or more"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1,"backward":2,"backward_input":3}])")),
              HasSubstr("backward_input is more than backward"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1,"backward":2,"updaet":2}])")),
              HasSubstr("did you mean 'update'?"));
  EXPECT_THAT(message(with(R"("link":{"bandwidth":0},"stages":[{"forward":1,"backward":2}])")), HasSubstr("free link"));
  EXPECT_THAT(message(with(R"("link":{"bandwidth":1e-308},"stages":[{"forward":1,"backward":2}])")),
              HasSubstr("link: bandwidth is 1e-308; give 1e-15 or more"))
      << "or times would be infinite";
  EXPECT_THROW(run({"gpipe", 4, 4}, 4,
                   [] {
                     CostModel costs = uniform_costs(2);
                     costs.stages.resize(3, costs.stages[0]);
                     return costs;
                   }()),
               InputError);
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
