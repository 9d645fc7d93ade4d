// Compares builders with the published formulas and tables, all with free messages and the given tb / tf.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "schedule/refusal.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

using testing_support::refusal;

double bubble(const Schedule& schedule, int64_t microbatches, double tb, double tb_input = -1) {
  const ComputeCosts costs{1, tb, tb_input < 0 ? tb / 2 : tb_input, tb_input < 0 ? tb / 2 : tb - tb_input};
  const double work = static_cast<double>(microbatches) * (1 + tb) * schedule.stages / schedule.workers;
  return 1 - work / makespan(schedule, microbatches, costs);
}

// Share of time that workers compute in the steady state.
double steady_utilisation(const Schedule& schedule, double tb) {
  const ComputeCosts costs{1, tb, tb / 2, tb / 2};
  const int64_t n = 20 * schedule.shift;
  return static_cast<double>(n) * (1 + tb) * schedule.stages / schedule.workers /
         (makespan(schedule, 2 * n, costs) - makespan(schedule, n, costs));
}

TEST(Published, BubblesOfFlushSchedules) {
  for (const int d : {1, 2, 3, 4, 8, 12}) {
    for (const int64_t n : {d, 2 * d, 5 * d}) {
      for (const double tb : {1.0, 2.0, 2.7}) {
        const double expected = (d - 1.0) / (static_cast<double>(n) + d - 1);
        EXPECT_NEAR(bubble(make_schedule({"gpipe", d, n}), n, tb), expected, 1e-9) << d << " " << n;
        EXPECT_NEAR(bubble(make_schedule({"1f1b", d, n}), n, tb), expected, 1e-9) << d << " " << n;
        for (const int v : {2, 3}) {
          const Schedule interleaved = make_schedule(
              {.name = "interleaved-1f1b", .stages = v * d, .window = n, .own = InterleavedSettings{.chunks = v}});
          EXPECT_NEAR(bubble(interleaved, n, tb), (d - 1.0) / (v * static_cast<double>(n) + d - 1), 1e-9);
        }
      }
    }
  }
}

TEST(Published, ZbH1HasAThirdOf1F1BsBubbleAndItsActivations) {
  for (const int d : {2, 4, 8}) {
    const int64_t n = 3 * d;
    const Schedule schedule = make_schedule({"zb-h1", d, n});
    // tf = ti = tw: (d-1) (tf + ti - tw) of bubble time, where 1F1B has (d-1) (tf + ti + tw).
    const double work = 3.0 * static_cast<double>(n);
    EXPECT_NEAR(makespan(schedule, n, ComputeCosts{1, 2, 1, 1}), work + d - 1, 1e-9);
    EXPECT_NEAR(makespan(make_schedule({"1f1b", d, n}), n, ComputeCosts{}), work + 3 * (d - 1), 1e-9);
    EXPECT_EQ(most_in_flight(schedule)[0], std::vector<int64_t>(d, d));
  }
}

TEST(Published, ChimeraWithAsManyMicrobatchesAsStages) {
  for (const int d : {2, 4, 8, 16}) {
    for (const int blocks : {1, 2, 4}) {
      const int64_t n = d * blocks;
      const auto formula = [&](double per) { return (d - 2.0) / (per * static_cast<double>(n) + d - 2); };
      const Schedule equal = make_schedule({.name = "chimera", .stages = d, .window = n, .tb_over_tf = 1});
      const Schedule twice = make_schedule({.name = "chimera", .stages = d, .window = n, .tb_over_tf = 2});
      EXPECT_LE(bubble(equal, n, 1), formula(2) + 1e-9) << d << " " << n;
      EXPECT_LE(bubble(twice, n, 2), formula(1.5) + 1e-9) << d << " " << n;
      if (blocks == 1) {
        EXPECT_NEAR(bubble(equal, n, 1), formula(2), 1e-9);
        EXPECT_NEAR(bubble(twice, n, 2), formula(1.5), 1e-9);
      }
      EXPECT_EQ(analyse_delays(twice, 3 * n).max_delay, 0);
      const auto held = most_in_flight(twice);
      for (int stage = 0; stage < d; ++stage) {
        EXPECT_LE(held[0][stage] + held[1][d - 1 - stage], blocks == 1 ? d : 2 * d);
      }
    }
  }
}

TEST(Published, DelaysOfAsynchronousSchedules) {
  for (const int d : {1, 2, 4, 7}) {
    for (const int64_t window : {static_cast<int64_t>(d), static_cast<int64_t>(2 * d + 1)}) {
      const Schedule two_versions = make_schedule({"pipedream-2bw", d, window});
      const DelayAnalysis delays = analyse_delays(two_versions, 10 * window);
      for (int stage = 0; stage < d; ++stage) {
        // Every microbatch at every stage, except those of the first window, which has no update before it.
        EXPECT_EQ(delays.delay[stage], (std::map<int64_t, int64_t>{{0, window}, {1, 9 * window}}));
      }
    }
    for (const int64_t a : {1, 2, 3, 5}) {
      const Schedule paci = make_schedule({"paci", d, a});
      const DelayAnalysis delays = analyse_delays(paci, 20 * a);
      for (int stage = 0; stage < d; ++stage) {
        EXPECT_LE(delays.mismatch[stage].rbegin()->first, (d - 1 - stage + a - 1) / a) << "stage " << stage;
      }
      EXPECT_EQ(paci.weights, WeightPolicy::Latest);
    }
    EXPECT_GT(steady_utilisation(make_schedule({"pipedream", d, 1}), 2), 0.999);
    EXPECT_GT(steady_utilisation(make_schedule({"pipedream-2bw", d, d}), 2), 0.999);
  }
}

std::string computations(const Schedule& schedule, int worker, int64_t microbatches) {
  std::string text;
  for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
    const Action action = *cursor.peek();
    if (action.is_per_window()) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", static_cast<char>(action.kind), action.microbatch);
  }
  return text;
}

Schedule amdp(int stages, int64_t window, double ratio = 2, int preload = -1) {
  return make_schedule({.name = "amdp",
                        .stages = stages,
                        .window = window,
                        .tb_over_tf = ratio,
                        .own = AmdpSettings{.preload = preload}});
}

TEST(Amdp, DepthFourIsThePublishedTable) {
  const Schedule schedule = amdp(4, 4);
  EXPECT_THAT(computations(schedule, 0, 16),
              ::testing::StartsWith("F0 F2 F1 B1 F3 B3 B0 F4 F6 B2 F5 B5 F7 B7 B4 F8 F10 B6 F9 B9 F11 B11 B8"));
  EXPECT_THAT(computations(schedule, 1, 16), ::testing::StartsWith("F0 F1 F2 F3 B1 B0 B3 B2 F4 F5 F6 F7 B5 B4 B7 B6"));
  EXPECT_THAT(computations(schedule, 2, 16), ::testing::StartsWith("F1 F0 F3 F2 B0 B1 B2 B3 F5 F4 F7 F6 B4 B5 B6 B7"));
  EXPECT_THAT(computations(schedule, 3, 16),
              ::testing::StartsWith("F1 F3 F0 B0 F2 B2 B1 F5 F7 B3 F4 B4 F6 B6 B5 F9 F11 B7"));
  // Stages {0,3}, {1,2}, {2,1}, {3,0} of pipelines (0, 1).
  EXPECT_EQ(schedule.placement, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {3, 2, 1, 0}}));
}

TEST(Amdp, FirstStagesAtDepthEight) {
  const Schedule schedule = amdp(8, 8);
  std::vector<int> first;
  for (const auto& pipeline : schedule.placement) first.push_back(pipeline[0]);
  EXPECT_EQ(first, (std::vector<int>{0, 3, 4, 7}));
}

TEST(Amdp, UtilisationByPreloads) {
  const std::map<int, std::vector<double>> published = {{4, {.750, .857, .923, .800}}, {8, {.857, .923, .960, .889}}};
  for (const auto& [d, utilisations] : published) {
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(steady_utilisation(amdp(d, d, 2, k), 2), utilisations[k], 5e-4) << d << k;
    EXPECT_NEAR(steady_utilisation(amdp(d, d, 1, 1), 1), 1, 1e-9);
    EXPECT_NEAR(steady_utilisation(amdp(d, d, 1, 2), 1), 1, 1e-9);
  }
}

TEST(Amdp, MakespanOfBlocks) {
  for (const int d : {4, 8}) {
    for (const int64_t k : {1, 2, 3, 10}) {
      for (const int64_t window : {d, 2 * d, 4 * d}) {
        if (k * d % window != 0) continue;
        EXPECT_EQ(makespan(amdp(d, window), k * d, ComputeCosts{}), static_cast<double>(k * (3 * d + 1) + 3));
      }
    }
    // delta = max(tb - tf, 2 tb - 3 tf) with the published preload, tb >= tf.
    for (const double tb : {1.0, 1.5, 2.0, 2.5, 3.0}) {
      const double delta = std::max(tb - 1, 2 * tb - 3);
      EXPECT_NEAR(steady_utilisation(amdp(d, d, tb, 2), tb), d * (1 + tb) / (d * (1 + tb) + delta), 1e-6) << tb;
    }
  }
}

TEST(Amdp, PreloadFollowsTheRatio) {
  for (const int d : {3, 4, 5, 6, 7, 8, 9, 14}) {
    const int64_t block = (d + 1) / 2 * 2;
    const bool ring = d % 4 != 0;
    for (const double tb : {1.0, 1.3, 2.0, 2.6}) {
      const double chosen = steady_utilisation(amdp(d, block, tb), tb);
      for (int k = 0; k < (ring ? 2 * block : 4); ++k) {
        try {
          EXPECT_GE(chosen, steady_utilisation(amdp(d, block, tb, k), tb) - 1e-6) << d << " " << tb << " " << k;
        } catch (const InputError&) {  // workers would wait for each other
        }
      }
    }
  }
}

TEST(Amdp, KeepsWorkersBusyAtEveryDepth) {
  for (int d = 1; d <= 64; ++d) {
    const int pipelines = (d + 1) / 2;
    const Schedule schedule = amdp(d, pipelines * 2);
    EXPECT_NO_THROW(validate(schedule)) << d;
    // As busy as published for depths that are multiples of four: 3d / (3d + 1), with d rounded up to an even number.
    EXPECT_NEAR(steady_utilisation(schedule, 2), d < 3 ? 1 : 6.0 * pipelines / (6.0 * pipelines + 1), 1e-9) << d;
  }
}

// Some of the numbers that are tried make workers wait for each other.
TEST(Amdp, PreloadsAreChosenForAnyOptions) {
  for (int d = 1; d <= 13; ++d) {
    for (int pipelines = 1; pipelines <= d; ++pipelines) {
      for (const int intake : {1, 2, 3, 5}) {
        for (const double tb : {0.5, 1.0, 2.0, 3.5}) {
          const ScheduleOptions options{.name = "amdp",
                                        .stages = d,
                                        .window = pipelines * intake,
                                        .tb_over_tf = tb,
                                        .own = AmdpSettings{.pipelines = pipelines, .intake = intake}};
          EXPECT_NO_THROW(validate(make_schedule(options))) << d << " " << pipelines << " " << intake << " " << tb;
        }
      }
    }
  }
}

TEST(Amdp, PreloadsDoNotMakeDelaysLonger) {
  for (const int d : {3, 4, 5, 6, 7, 8, 9, 12, 14}) {
    const int64_t block = (d + 1) / 2 * 2;
    for (const double tb : {1.0, 2.0, 3.0}) {
      for (const int64_t window : {block, block + 1, 2 * block, 5 * block / 2}) {
        EXPECT_EQ(mean_delays(amdp(d, window, tb)), mean_delays(amdp(d, window, tb, 2))) << d << " " << tb;
      }
    }
  }
}

// Their preloads are found with a smaller pipeline.
TEST(Amdp, KeepsWorkersBusyInDeepPipelines) {
  for (const int d : {65, 66, 67, 68, 101, 130}) {
    const int pipelines = (d + 1) / 2;
    const Schedule schedule = amdp(d, pipelines * 2);
    EXPECT_NO_THROW(validate(schedule)) << d;
    EXPECT_NEAR(steady_utilisation(schedule, 2), 6.0 * pipelines / (6.0 * pipelines + 1), 1e-9) << d;
  }
  // What is best for the smaller pipeline makes workers of this one wait for each other.
  EXPECT_NO_THROW(validate(make_schedule({.name = "amdp",
                                          .stages = 81,
                                          .window = 132,
                                          .tb_over_tf = 0.5,
                                          .own = AmdpSettings{.pipelines = 33, .intake = 4}})));
}

TEST(Amdp, MismatchIsOneStepAndOnlyInTheFirstBlockOfAWindow) {
  for (int d = 1; d <= 24; ++d) {
    for (const int64_t blocks : {1, 2, 5}) {
      const Schedule schedule = amdp(d, (d + 1) / 2 * 2 * blocks);
      const DelayAnalysis analysis = analyse_delays(schedule, 8 * schedule.shift);
      EXPECT_LE(analysis.max_mismatch, 1) << d;
      EXPECT_LE(analysis.max_delay, 1) << d;
    }
    // Windows that are not a multiple of a block are served too.
    const Schedule odd = amdp(d, (d + 1) / 2 * 2 + 1);
    EXPECT_NO_THROW(validate(odd)) << d;
    EXPECT_LE(analyse_delays(odd, 4 * odd.shift).max_mismatch, 1) << d;
  }
}

// For each worker, the number of (microbatch, stage) pairs per window whose backward reads newer weights than their
// forward.
std::vector<int64_t> mismatched_per_window(const Schedule& schedule) {
  std::vector<int64_t> counts;
  const ReplicaNumbers replicas(schedule);
  const int64_t windows = 4;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    VersionTracker tracker(schedule, replicas, worker);
    std::map<std::tuple<int, int, int64_t>, int64_t> forward;
    int64_t count = 0;
    for (ProgramCursor cursor(schedule, worker, (windows + 1) * schedule.window); cursor.peek(); cursor.advance()) {
      const Action action = *cursor.peek();
      const int64_t version = tracker.track(action);
      const std::tuple key{action.pipeline, action.stage, action.microbatch};
      if (action.kind == ActionKind::Forward) forward[key] = version;
      if (action.kind == ActionKind::Backward && action.microbatch >= schedule.window) count += version != forward[key];
    }
    counts.push_back(count / windows);
  }
  return counts;
}

TEST(Amdp, MismatchedMicrobatchesAreThePublishedCounts) {
  // Inner workers have d; workers with a first stage have 2 (d = 4) or 7 (d = 8).
  for (const int64_t blocks : {1, 2, 4}) {
    EXPECT_EQ(mismatched_per_window(amdp(4, 4 * blocks)), (std::vector<int64_t>{2, 4, 4, 2}));
    EXPECT_EQ(mismatched_per_window(amdp(8, 8 * blocks)), (std::vector<int64_t>{7, 8, 8, 7, 7, 8, 8, 7}));
  }
}

TEST(Amdp, EveryNumberOfPipelinesIsServed) {
  for (int d = 1; d <= 12; ++d) {
    double last = 0;
    for (int k = 1; k <= (d + 1) / 2; ++k) {
      const Schedule schedule =
          make_schedule({.name = "amdp", .stages = d, .window = 2 * k, .own = AmdpSettings{.pipelines = k}});
      EXPECT_NO_THROW(validate(schedule)) << d << " " << k;
      EXPECT_LE(analyse_delays(schedule, 6 * schedule.shift).max_mismatch, 1);
      const double utilisation = steady_utilisation(schedule, 2);
      EXPECT_GT(utilisation, last - 0.1) << d << " " << k;  // more pipelines, busier workers
      last = utilisation;
    }
  }
  for (int intake = 1; intake <= 4; ++intake) {
    const Schedule schedule =
        make_schedule({.name = "amdp", .stages = 6, .window = 12, .own = AmdpSettings{.intake = intake}});
    EXPECT_NO_THROW(validate(schedule)) << intake;
  }
}

TEST(Errors, SayWhatWouldWork) {
  EXPECT_THAT(refusal({"amdp", 8, 4}), ::testing::HasSubstr("make the window at least 8, or pipelines at most 2"));
  EXPECT_THAT(refusal({"pipedream-2bw", 4, 3}), ::testing::HasSubstr("make the window at least 4"));
  EXPECT_THAT(refusal({"interleaved-1f1b", 5, 4}), ::testing::HasSubstr("make stages a multiple of chunks"));
  EXPECT_THAT(refusal({"interleaved-1f1b", 8, 6}), ::testing::HasSubstr("make the window a multiple of 4"));
  EXPECT_THAT(refusal({"chimera", 3, 4}), ::testing::HasSubstr("use 1f1b for odd ones"));
}

TEST(Csv, ComesBackTheSame) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"}) {
    const Schedule schedule = make_schedule({name, 4, 4});
    const std::string written = to_csv(schedule, 4);
    const Schedule read = parse_csv(written, "a.csv");
    EXPECT_NO_THROW(validate(read)) << name;
    EXPECT_EQ(to_csv(read, 4), written);
    EXPECT_EQ(makespan(read, 8, ComputeCosts{}), makespan(schedule, 8, ComputeCosts{}));
  }
  EXPECT_EQ(to_csv(make_schedule({"1f1b", 2, 2}), 2), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const Schedule numbered = parse_csv("0F0,0B0\n", "#1.csv");
  EXPECT_EQ(parse_schedule(to_text(numbered), "a.sched").name, "_1.csv") << "what follows # is a comment in a file";
  const Schedule idle = parse_csv("0F0,,,0B0\r\n,1F0,1B0,\r\n", "idle.csv");
  EXPECT_NO_THROW(validate(idle));
}

// The CSV that PyTorch's ScheduleDualPipeV writes for two ranks and four microbatches.
TEST(Csv, ActionsThatRunAsOneFollowOneAnother) {
  const std::string file = (testing_support::source_directory() / "tests/schedule/pytorch/dualpipe-v-2-4.csv").string();
  const Schedule read = parse_csv(read_file(file), file);
  EXPECT_NO_THROW(validate(read));
  EXPECT_TRUE(read.has_flush());
  EXPECT_EQ(read.placement[0], (std::vector{0, 1, 1, 0}));
  EXPECT_EQ(read.window, 4);
  EXPECT_THAT(to_csv(read, 4), ::testing::HasSubstr("3W0,3F1,0F3,3B1,3F2,0B0,3B2,3F3,0B1"));
  EXPECT_EQ(makespan(read, 4, ComputeCosts{1, 2, 1, 1}), 4 * 6 + 1);
  EXPECT_EQ(to_csv(parse_csv("( 0F0 ; 0B0 )OVERLAP_F_B\n", "a.csv"), 1), "0F0,0B0\n");
}

TEST(Csv, ErrorsSayRowAndCell) {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_csv(text, "a.csv");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("0F0,0X0\n"), ::testing::StartsWith("a.csv:1: cell 2: "));
  EXPECT_THAT(message("0F0,0B0\n0F1,0B1\n"), ::testing::HasSubstr("stage 0 is in row 1 already"));
  EXPECT_THAT(message("0F0,0U0\n"), ::testing::HasSubstr("not a computation"));
  EXPECT_THAT(message("0F0,0B0\n2F0,2B0\n"), ::testing::HasSubstr("no stage 1"));
  EXPECT_THAT(message(""), ::testing::HasSubstr("no actions"));
  for (const char* cell :
       {"()OVERLAP_F_B", "(0F0;)OVERLAP_F_B", "(;0B0)OVERLAP_F_B", "(0F0;0B0", "(0F0;0B0)", "(0F0;0B0)OVERLAP",
        "(0F0;0B0)OVERLAP_F_B0", "((0F0;0B0)OVERLAP_F_B;1F0)OVERLAP_F_B", "(0F0;0U0)OVERLAP_F_B", "0F0;0B0", "("}) {
    EXPECT_THAT(message((std::string("0F1,0B1,") + cell + "\n").c_str()), ::testing::StartsWith("a.csv:1: cell 3: "))
        << cell;
  }
  EXPECT_THAT(message("(0F0;1B0)OVERLAP_F_B\n(0F1)OVERLAP_F_B\n"), ::testing::HasSubstr("stage 0 is in row 1"));
  EXPECT_THROW(to_csv(amdp(4, 4), 4), InputError);
}

}  // namespace
}  // namespace gyre
