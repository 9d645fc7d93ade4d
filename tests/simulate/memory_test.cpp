// The memory of workers against a published table, hand-made examples and a count through a long run.
#include "gyre/simulate/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gyre/schedule/builders.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/replicas.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

std::vector<WorkerMemory> memory_of(const ScheduleOptions& options, int64_t microbatches, const CostModel& costs) {
  return simulate(make_schedule(options), costs, {.microbatches = microbatches}).memory;
}

CostModel memory_costs() {
  CostModel costs = uniform_costs(2);
  costs.stages[0].activation_bytes = 1;
  costs.stages[0].weight_bytes = 1000;
  costs.stages[0].gradient_bytes = 1000000;
  costs.stages[0].optimizer_bytes = 1000000000;
  return costs;
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
    const auto one = memory_of({name, 4, 4}, 16, costs), all = memory_of({name, 4, 4, 3}, 48, costs);
    const auto first_updates =
        memory_of({.name = name, .stages = 4, .window = 4, .replicas = 3, .shard_optimizer = false}, 48, costs);
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

}  // namespace
}  // namespace gyre
