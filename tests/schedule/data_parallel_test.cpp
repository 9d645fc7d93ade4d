// Replicas of whole pipelines: each replica behaves as the original schedule does.
#include "gyre/schedule/data_parallel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/load.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "schedule/refusal.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;

// Every builtin schedule at the depths and windows that it serves, including windows that are a multiple of nothing.
std::vector<ScheduleOptions> every_kind() {
  std::vector<ScheduleOptions> all;
  for (const std::string& name : schedule_names()) {
    for (const int stages : {1, 2, 3, 4, 5, 8}) {
      for (const int64_t window : {1, 2, 4, 5, 7, 8, 12}) {
        const ScheduleOptions options{.name = name, .stages = stages, .window = window};
        if (refusal(options) == "no error") all.push_back(options);
      }
    }
  }
  for (const AmdpSettings& own : {AmdpSettings{.pipelines = 2}, AmdpSettings{.pipelines = 3, .intake = 3}}) {
    all.push_back({.name = "amdp", .stages = 6, .window = 13, .own = own});
  }
  return all;
}

std::string name_of(const ScheduleOptions& options, int replicas) {
  return fmt::format("{}, {} stages, window {}, {} replicas", options.name, options.stages, options.window, replicas);
}

using Histogram = std::map<int64_t, int64_t>;
std::vector<Histogram> times(std::vector<Histogram> histograms, int64_t factor) {
  for (Histogram& histogram : histograms) {
    for (auto& [value, count] : histogram) count *= factor;
  }
  return histograms;
}

TEST(Replicas, AreTheSameUnderOtherNumbersOfWorkers) {
  for (ScheduleOptions options : every_kind()) {
    options.replicas = 3;
    const Schedule by_pipelines = make_schedule(options);
    options.by_stages = true;
    const Schedule by_stages = make_schedule(options);
    const std::string name = name_of(options, 3);
    validate(by_stages);
    EXPECT_EQ(makespan(by_stages, 4 * by_stages.shift, ComputeCosts{}),
              makespan(by_pipelines, 4 * by_pipelines.shift, ComputeCosts{}))
        << name;
    const int each = by_pipelines.workers / 3;
    for (int pipeline = 0; pipeline < by_pipelines.pipelines; ++pipeline) {
      for (int stage = 0; stage < by_pipelines.stages; ++stage) {
        const int before = by_pipelines.worker_of(pipeline, stage);
        ASSERT_EQ(by_stages.worker_of(pipeline, stage), before % each * 3 + before / each) << name;
      }
    }
    for (int worker = 0; worker < by_pipelines.workers; ++worker) {
      ASSERT_EQ(by_stages.programs[worker % each * 3 + worker / each].period, by_pipelines.programs[worker].period);
    }
  }
}

TEST(Replicas, HaveTheDelaysOfOneUnderEverySchedule) {
  for (ScheduleOptions options : every_kind()) {
    const Schedule one = make_schedule(options);
    const int64_t n = representative_microbatches(one);
    for (const int replicas : {1, 2, 3, 4}) {
      options.replicas = replicas;
      options.shard_optimizer = replicas != 3;
      const Schedule all = make_schedule(options);
      const std::string what = name_of(options, replicas);
      ASSERT_NO_THROW(validate(all)) << what;
      EXPECT_EQ(all.workers, one.workers * replicas) << what;
      EXPECT_EQ(all.window, one.window * replicas) << what;
      EXPECT_EQ(all.has_flush(), one.has_flush()) << what;
      EXPECT_EQ(mean_delays(all), mean_delays(one)) << what;
      EXPECT_EQ(longest_delays(all).delay, longest_delays(one).delay) << what;
      EXPECT_EQ(longest_delays(all).mismatch, longest_delays(one).mismatch) << what;
      for (const int64_t length : {one.window, 3 * one.window, n}) {
        const DelayAnalysis of_one = analyse_delays(one, length), of_all = analyse_delays(all, length * replicas);
        EXPECT_EQ(of_all.delay, times(of_one.delay, replicas)) << what << ", " << length;
        EXPECT_EQ(of_all.mismatch, times(of_one.mismatch, replicas)) << what << ", " << length;
      }
      // Messages and updates are free here, so no replica waits for another.
      EXPECT_EQ(makespan(all, n * replicas, ComputeCosts{}), makespan(one, n, ComputeCosts{})) << what;
    }
  }
}

bool has_adoptions(const Schedule& schedule) {
  const auto adopts = [](const Action& action) { return action.kind == ActionKind::Adopt; };
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.period.begin(), program.period.end(), adopts);
  });
}

// The actions of `replica` on its worker, with the numbers that they have in the original schedule.
std::vector<Action> actions_of(const Schedule& all, int replicas, int replica, int worker, int64_t limit) {
  std::vector<Action> actions;
  for (ProgramCursor cursor(all, worker, limit); cursor.peek(); cursor.advance()) {
    Action action = *cursor.peek();
    EXPECT_EQ(action.pipeline % replicas, replica);
    action.pipeline /= replicas;
    if (!action.is_per_window()) {
      EXPECT_EQ(action.microbatch % replicas, replica);
      action.microbatch /= replicas;
    }
    actions.push_back(action);
  }
  return actions;
}

// What a replica's actions must be, given the original's. Every replica makes the update of its shard, or the first
// makes all. If no pipeline of the original adopts, replicas whose weights do not change with their owner adopt in its
// place.
std::vector<Action> expected_of(std::vector<Action> one, int replica, bool shard_optimizer, bool adopts) {
  std::vector<Action> actions;
  for (Action action : one) {
    const bool update = action.kind == ActionKind::Update;
    if (!update || shard_optimizer || replica == 0) actions.push_back(action);
    if (!update || adopts || (!shard_optimizer && replica == 0)) continue;
    action.kind = ActionKind::Adopt;
    actions.push_back(action);
  }
  return actions;
}

TEST(Replicas, RunTheProgramOfOneAndAdoptWhereItUpdates) {
  for (const ScheduleOptions& options : every_kind()) {
    const Schedule one = make_schedule(options);
    const int64_t n = representative_microbatches(one);
    for (const bool shard_optimizer : {false, true}) {
      const Schedule all = replicated(one, 3, shard_optimizer);
      EXPECT_EQ(all.shards(), shard_optimizer ? 3 : 1);
      EXPECT_EQ(all.owner[0], one.owner[0]);
      for (int worker = 0; worker < one.workers; ++worker) {
        std::vector<Action> actions;
        for (ProgramCursor cursor(one, worker, n); cursor.peek(); cursor.advance()) actions.push_back(*cursor.peek());
        for (const int replica : {0, 1, 2}) {
          EXPECT_EQ(actions_of(all, 3, replica, replica * one.workers + worker, 3 * n),
                    expected_of(actions, replica, shard_optimizer, has_adoptions(one)))
              << name_of(options, 3) << ", worker " << worker;
        }
      }
    }
  }
}

TEST(Replicas, OfAPipelineAdoptAllOrNone) {
  int with = 0, without = 0;
  for (ScheduleOptions options : every_kind()) {
    for (const int replicas : {1, 3}) {
      for (const bool shard_optimizer : {false, true}) {
        options.replicas = replicas;
        options.shard_optimizer = shard_optimizer;
        const Schedule schedule = make_schedule(options);
        const std::set<std::pair<int, int>> adopting = adopting_replicas(schedule);
        const std::vector<bool> adopts = adopting_pipelines(schedule);
        ASSERT_EQ(std::ssize(adopts), schedule.pipelines);
        for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
          (adopts[pipeline] ? with : without) += 1;
          for (int stage = 0; stage < schedule.stages; ++stage) {
            EXPECT_EQ(adopts[pipeline], adopting.contains({pipeline, stage})) << name_of(options, replicas);
          }
        }
      }
    }
  }
  EXPECT_GT(with, 10);
  EXPECT_GT(without, 10);
}

TEST(Replicas, HoldWhatOneHolds) {
  for (const ScheduleOptions& options : every_kind()) {
    const Schedule one = make_schedule(options);
    const auto expected = most_in_flight(one);
    const auto found = most_in_flight(replicated(one, 2, true));
    for (int pipeline = 0; pipeline < one.pipelines; ++pipeline) {
      for (const int replica : {0, 1}) {
        EXPECT_EQ(found[2 * pipeline + replica], expected[pipeline]) << name_of(options, 2);
      }
    }
  }
}

TEST(Replicas, AreWrittenAndReadAsText) {
  for (const char* name : {"1f1b", "pipedream-2bw", "chimera", "amdp"}) {
    const Schedule all = make_schedule({.name = name, .stages = 4, .window = 4, .replicas = 2});
    const Schedule read = parse_schedule(to_text(all), "memory");
    EXPECT_NO_THROW(validate(read)) << name;
    EXPECT_EQ(to_text(read), to_text(all)) << name;
  }
  EXPECT_EQ(to_text(make_schedule({"pipedream", 2, 1, 2})),
            "gyre-schedule 1\nname pipedream\nstages 2\npipelines 2\nworkers 4\nwindow 2\nshift 2\nkind training\n"
            "weights stash\nplacement 0 1\nplacement 2 3\nowner 0 1\nowner 2 3\n"
            "worker 0: 0:0F0 | 0:0F2 0:0B0 0:0U0 0:0A0\n"
            "worker 1: 0:1F0 0:1B0 0:1U0 0:1A0\n"
            "worker 2: 1:0F1 | 1:0F3 1:0B1 1:0U0 1:0A0\n"
            "worker 3: 1:1F1 1:1B1 1:1U0 1:1A0\n");
  EXPECT_THAT(
      to_text(make_schedule({.name = "pipedream", .stages = 2, .window = 1, .replicas = 2, .shard_optimizer = false})),
      HasSubstr("owner 0 1\nworker 0: 0:0F0 | 0:0F2 0:0B0 0:0U0\nworker 1: 0:1F0 0:1B0 0:1U0\n"
                "worker 2: 1:0F1 | 1:0F3 1:0B1 1:0A0\nworker 3: 1:1F1 1:1B1 1:1A0\n"));
}

TEST(Replicas, AFileIsOne) {
  const testing_support::TemporaryDirectory directory;
  const std::string text = (directory.path() / "mine.txt").string(), csv = (directory.path() / "mine.csv").string();
  const Schedule one = make_schedule({"1f1b", 2, 4});
  std::ofstream(text) << to_text(one);
  std::ofstream(csv) << to_csv(one, 4);
  for (const std::string& file : {text, csv}) {
    const Schedule all = load_schedule({file, 2, 4, 3}, true);
    EXPECT_EQ(all.workers, 6);
    EXPECT_EQ(all.window, 12);
    EXPECT_NO_THROW(validate(all));
  }
  EXPECT_THAT(
      [&] {
        load_schedule({text, 2, 12, 3}, true);
      },
      ::testing::ThrowsMessage<InputError>(HasSubstr("set stages = 2 and accumulate = 4")))
      << "the window is that of one";
}

// The memory of a tied weight is predicted for a file as for the builtin that it was printed from.
TEST(Replicas, OfAFileOfATiedModelAreTied) {
  const testing_support::TemporaryDirectory directory;
  const std::string file = (directory.path() / "mine.txt").string();
  std::ofstream(file) << to_text(make_schedule({.name = "1f1b", .stages = 4, .window = 4, .tied = true}));
  for (const int replicas : {1, 2}) {
    for (const bool by_stages : {false, true}) {
      ScheduleOptions options{
          .name = "1f1b", .stages = 4, .window = 4, .replicas = replicas, .tied = true, .by_stages = by_stages};
      const Schedule builtin = make_schedule(options);
      options.name = file;
      const Schedule loaded = load_schedule(options, true);
      EXPECT_TRUE(builtin.tied && loaded.tied) << replicas << by_stages;
      EXPECT_EQ(to_text(loaded), to_text(builtin)) << replicas << by_stages;
    }
  }
}

// A worker may do nothing but update. If only the first replica makes updates, the others have no such worker.
TEST(Replicas, AWorkerThatOnlyUpdatesIsThereOnceUnlessEachHasAShard) {
  const Schedule one = parse_schedule(
      "gyre-schedule 1\nname server\nstages 1\npipelines 1\nworkers 2\nwindow 2\nshift 2\nkind training\nweights "
      "stash\nplacement 0\nowner 1\nworker 0: 0F0 0F1 0B0 0B1 0A0\nworker 1: 0U0\n",
      "memory");
  validate(one);
  const Schedule all = replicated(one, 3, false);
  EXPECT_EQ(all.workers, 4);
  EXPECT_EQ(all.placement, (std::vector<std::vector<int>>{{0}, {2}, {3}}));
  EXPECT_NO_THROW(validate(all));
  EXPECT_NO_THROW(validate(parse_schedule(to_text(all), "memory")));
  const Schedule shards = replicated(one, 3, true);
  EXPECT_EQ(shards.placement, (std::vector<std::vector<int>>{{0}, {2}, {4}}));
  EXPECT_EQ(shards.owner, (std::vector<std::vector<int>>{{1}, {3}, {5}}));
  EXPECT_NO_THROW(validate(shards));
}

// Shards are cut further.
TEST(Replicas, OfReplicas) {
  for (const char* name : {"pipedream", "pipedream-2bw", "amdp"}) {
    const Schedule one = make_schedule({.name = name, .stages = 4, .window = 4});
    for (const bool shard_optimizer : {false, true}) {
      const Schedule all = replicated(replicated(one, 2, true), 3, shard_optimizer);
      EXPECT_NO_THROW(validate(all)) << name;
      EXPECT_EQ(all.shards(), shard_optimizer ? 6 : 2);
      EXPECT_EQ(analyse_delays(all, 600).delay, times(analyse_delays(one, 100).delay, 6)) << name;
    }
  }
}

std::string fault_of(const Schedule& schedule) {
  try {
    validate(schedule);
    return "no error";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Replicas, FaultyShardsAreRefused) {
  const Schedule good = make_schedule({.name = "1f1b", .stages = 2, .window = 2, .replicas = 2});
  EXPECT_EQ(fault_of(good), "no error");
  Schedule bad = good;
  bad.owner.push_back(good.owner[0]);
  EXPECT_THAT(fault_of(bad), HasSubstr("updates are in 3 shards, and there are 2 pipelines"));
  bad = good;
  bad.owner[1] = good.owner[0];
  EXPECT_THAT(fault_of(bad), HasSubstr("worker 0 owns two shards of stage 0"));
  bad = good;
  bad.owner.pop_back();
  EXPECT_THAT(fault_of(bad), HasSubstr("written under its shard's number, and there is 1"));
  bad = good;
  const auto without = [&](int worker, ActionKind kind) {
    bad = good;
    std::erase_if(bad.programs[worker].period, [&](const Action& action) { return action.kind == kind; });
    return fault_of(bad);
  };
  EXPECT_THAT(without(3, ActionKind::Update),
              HasSubstr("1:1U0 on worker 3: is missing from the period, which is for 1 window"));
  EXPECT_THAT(without(0, ActionKind::Adopt), HasSubstr("0:0A0 on worker 0: is missing"));
  // An adoption before the update of its own shard waits forever.
  bad = good;
  std::swap(*(bad.programs[2].period.end() - 1), *(bad.programs[2].period.end() - 2));
  EXPECT_THAT(fault_of(bad), HasSubstr("deadlock: it needs 1:0U0, which this worker does later or never"));
}

TEST(Replicas, APipelineWithoutAdoptionsStandsBesideItsOwners) {
  Schedule all = make_schedule({.name = "gpipe", .stages = 2, .window = 2, .replicas = 2, .shard_optimizer = false});
  for (const int worker : {2, 3}) {
    std::erase_if(all.programs[worker].period, [](const Action& a) { return a.kind == ActionKind::Adopt; });
  }
  try {
    validate(all);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("1:0A0 on worker 2: is missing; pipeline 1 has no A, and its stage 0 is on worker 2, not on 0"));
  }
}

TEST(Replicas, ThatAreTooManyAreRefusedBeforeAnythingIsBuilt) {
  EXPECT_THAT(refusal({"1f1b", 4, 8, 0}), HasSubstr("replicas is 0; give 1 to 65536"));
  EXPECT_THAT(refusal({"1f1b", 4, 8, 65'536}), HasSubstr("stages is 4; give 1 to 1"));
  EXPECT_THAT(refusal({"1f1b", 1, 8, 65'536}), "no error");
  EXPECT_THAT(refusal({"1f1b", 1, 8'192, 65'536}), HasSubstr("the window is 8192; give 1 to 2048"));
  EXPECT_THAT(refusal({"1f1b", 64, 65'536, 1'000}),
              HasSubstr("8388672 actions in each of 1000 replicas, and at most 134217728 are held in memory; make the "
                        "window at most 1048, or replicas smaller"));
  EXPECT_THAT(
      refusal({.name = "amdp", .stages = 64, .window = 4'000'001, .replicas = 10, .names = {.are_flags = true}}),
      HasSubstr("or replicas smaller"));
  const Schedule wide = make_schedule({"1f1b", 1'000, 1});
  try {
    replicated(wide, 1'000, true);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "schedule 1f1b: replicas is 1000, and a replica has 1000 workers, of which there may be 65536; give 1 "
                 "to 65");
  }
}

TEST(ReductionChains, AddTheReplicasOfEachPipelineAndEndAtTheFirst) {
  for (const ScheduleOptions& options : every_kind()) {
    for (const int replicas : {1, 2, 5}) {
      const Schedule all = replicated(make_schedule(options), replicas, true);
      const ReductionChains chains(all);
      for (int pipeline = 0; pipeline < all.pipelines; ++pipeline) {
        const int first = pipeline / replicas * replicas;
        EXPECT_EQ(chains.last(pipeline), first);
        EXPECT_EQ(chains.sends_to_owners(pipeline), pipeline == first);
        // The other pipelines follow in order, and the first of them begins the chain.
        const int before = pipeline == first ? first + replicas - 1 : pipeline - 1;
        if (replicas == 1 || before == first) {
          EXPECT_FALSE(chains.previous(pipeline)) << name_of(options, replicas);
        } else {
          EXPECT_EQ(chains.previous(pipeline), before) << name_of(options, replicas);
          EXPECT_EQ(chains.next_worker(before, 0), all.worker_of(pipeline, 0));
          EXPECT_EQ(chains.passed_on_by(before), pipeline == first ? 0 : chains.passed_on_by(pipeline) + 1);
        }
      }
    }
  }
}

TEST(ReductionChains, TakeOnlyPipelinesThatAddToEveryWindow) {
  Schedule all = make_schedule({"gpipe", 1, 2, 4});
  all.window = all.shift / 4;
  const ReductionChains chains(all);
  for (int pipeline = 0; pipeline < 4; ++pipeline) EXPECT_TRUE(chains.sends_to_owners(pipeline));
}

// One pipeline keeps all of its workers busy; every replica has one.
TEST(ForwardOnly, HasAPipelineForEachReplica) {
  for (const ScheduleOptions& options : every_kind()) {
    const Schedule one = build_forward_only(make_schedule(options));
    EXPECT_EQ(one.pipelines, 1);
    for (const int replicas : {2, 3}) {
      const Schedule training = replicated(make_schedule(options), replicas, true);
      const Schedule all = build_forward_only(training);
      EXPECT_EQ(all.pipelines, replicas) << name_of(options, replicas);
      EXPECT_TRUE(std::equal(all.placement.begin(), all.placement.end(), training.placement.begin()));
      EXPECT_NO_THROW(validate(all)) << name_of(options, replicas);
      EXPECT_EQ(makespan(all, 10 * replicas, ComputeCosts{}), makespan(one, 10, ComputeCosts{}));
      EXPECT_NO_THROW(makespan(all, 10 * replicas - 1, ComputeCosts{})) << "any number of microbatches";
    }
  }
}

}  // namespace
}  // namespace gyre
