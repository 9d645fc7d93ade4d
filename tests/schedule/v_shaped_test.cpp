// Compares ZB-V and DualPipeV with their papers' formulas and with the orders that PyTorch writes; messages are free.
#include "gyre/schedule/v_shaped.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/validate.h"
#include "schedule/refusal.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

using testing_support::refusal;

constexpr ComputeCosts kEqual{1, 2, 1, 1};  // a forward and both halves of a backward take equally long

Schedule v_shaped(const std::string& name, int workers, int64_t window) {
  return make_schedule({name, 2 * workers, window});
}

// The most microbatches that a worker holds, both of its stages together.
int64_t most_held(const Schedule& schedule, int worker) {
  int64_t held = 0, most = 0;
  for (ProgramCursor cursor(schedule, worker, 2 * schedule.window); cursor.peek(); cursor.advance()) {
    const ActionKind kind = cursor.peek()->kind;
    if (kind == ActionKind::Forward) most = std::max(most, ++held);
    if (kind == ActionKind::Backward || kind == ActionKind::BackwardWeights) --held;
  }
  return most;
}

TEST(VShaped, GoesDownTheWorkersAndBackUp) {
  for (const char* name : {"zb-v", "dualpipe-v"}) {
    const Schedule schedule = v_shaped(name, 3, 6);
    EXPECT_EQ(schedule.workers, 3);
    EXPECT_EQ(schedule.placement, (std::vector<std::vector<int>>{{0, 1, 2, 2, 1, 0}}));
    EXPECT_EQ(schedule.owner, schedule.placement);
    EXPECT_EQ(schedule.weights, WeightPolicy::Stash);
    const ScheduleKind& kind = schedule_kinds().at(name);
    EXPECT_EQ(stages_per_worker(kind, kind.own), 2);
    EXPECT_TRUE(kind.windows({name, 6, 1}).takes_all);
  }
}

TEST(VShaped, EverySizeIsValidAndSynchronous) {
  for (int p = 1; p <= 8; ++p) {
    for (int64_t n = 1; n <= 3 * p + 1; ++n) {
      for (const char* name : {"zb-v", "dualpipe-v"}) {
        const std::string what = fmt::format("{} on {} workers, window {}", name, p, n);
        if (name == std::string("dualpipe-v") && n < 2 * p) {
          EXPECT_THROW(v_shaped(name, p, n), InputError) << what;
          continue;
        }
        const Schedule schedule = v_shaped(name, p, n);
        EXPECT_NO_THROW(validate(schedule)) << what;
        EXPECT_TRUE(schedule.has_flush()) << what;
        EXPECT_EQ(analyse_delays(schedule, 3 * n).max_mismatch, 0) << what;
      }
    }
  }
}

TEST(ZbV, NobodyWaitsAndEveryWorkerHoldsWhat1F1BsFirstDoes) {
  for (const int p : {1, 2, 3, 4, 5, 8, 13}) {
    for (const int64_t n : {2 * p - 1, 2 * p, 3 * p, 5 * p + 1}) {
      const Schedule schedule = v_shaped("zb-v", p, n);
      // Worker w begins w forwards later than the first and is busy until it ends, across windows.
      for (const int64_t windows : {1, 2, 5}) {
        EXPECT_EQ(makespan(schedule, windows * n, kEqual), static_cast<double>(windows * 6 * n + p - 1))
            << p << " " << n;
      }
      // Its stages are half as long as those of 1F1B on the same number of workers, where the first worker holds p.
      EXPECT_EQ(most_in_flight(make_schedule({"1f1b", p, n}))[0][0], p);
      for (int worker = 0; worker < p; ++worker) EXPECT_EQ(most_held(schedule, worker), 2 * p) << p << " " << n;
    }
    for (int64_t n = 1; n < 2 * p - 1; ++n) {
      const Schedule schedule = v_shaped("zb-v", p, n);  // a window that does not fill the pipeline
      for (int worker = 0; worker < p; ++worker) EXPECT_LE(most_held(schedule, worker), 2 * n) << p << " " << n;
    }
  }
}

TEST(DualPipeV, HasNoMoreThanItsPublishedBubbleAndActivations) {
  for (const int p : {1, 2, 3, 4, 5, 8, 13}) {
    for (const int64_t n : {2 * p, 2 * p + 1, 3 * p, 5 * p}) {
      const Schedule schedule = v_shaped("dualpipe-v", p, n);
      for (const ComputeCosts costs : {kEqual, {2, 2, 1, 1}, {1, 3, 2, 1}, {3, 4, 3, 1}, {1, 2.5, 1.5, 1}}) {
        const double work = 2.0 * static_cast<double>(n) * (costs.forward + costs.backward);
        // (p - 1) (F&B + B - 3 W), where F&B, a forward beside a backward, takes as long as both.
        const double published = (p - 1) * (costs.forward + 2 * costs.backward - 3 * costs.backward_weights);
        EXPECT_LE(makespan(schedule, n, costs), work + published + 1e-9) << p << " " << n;
      }
      EXPECT_EQ(makespan(schedule, n, kEqual), static_cast<double>(6 * n + p - 1)) << p << " " << n;
      for (int worker = 0; worker < p; ++worker) EXPECT_EQ(most_held(schedule, worker), 2 * p + 1) << p << " " << n;
    }
  }
}

// pytorch/write.py wrote the files.
TEST(VShaped, OrdersArePyTorchs) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing_support::source_directory() / "tests/schedule/pytorch")) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    const std::string stem = entry.path().stem().string();
    const Schedule read = parse_csv(read_file(entry.path()), stem);
    EXPECT_NO_THROW(validate(read)) << stem;
    const std::string name = stem.substr(0, stem.find("-v-") + 2);
    EXPECT_EQ(stem, fmt::format("{}-{}-{}", name, read.workers, read.window));
    const Schedule built = v_shaped(name, read.workers, read.window);
    EXPECT_EQ(to_csv(read, read.window), to_csv(built, built.window)) << stem;
    EXPECT_EQ(read.placement, built.placement) << stem;
  }
  EXPECT_EQ(files, 10);
}

TEST(VShaped, SizesThatAreNotServedAreToldWithWhatWouldBe) {
  EXPECT_EQ(refusal({"zb-v", 5, 8}),
            "schedule zb-v: every worker has two stages, and stages is 5; give an even number");
  EXPECT_EQ(refusal({.name = "dualpipe-v", .stages = 3, .window = 8, .names = {.stages = "--stages"}}),
            "schedule dualpipe-v: every worker has two stages, and --stages is 3; give an even number");
  EXPECT_EQ(refusal({"dualpipe-v", 8, 7}),
            "schedule dualpipe-v: a window of 7 microbatches is too short for 8 stages; make the window at least 8");
  EXPECT_EQ(refusal({"zb-v", 8, 1}), "no error");
}

// The builder's loops must stop as soon as a short window has no more actions for them.
TEST(ZbV, AShortWindowOnManyWorkersIsBuiltAtOnce) {
  const Schedule schedule = make_schedule({"zb-v", 65536, 1});
  EXPECT_EQ(count_actions(schedule, 1), 65536 * (3 + 1));
}

}  // namespace
}  // namespace gyre
