// Compares builders, cursors, delay analysis and the text form with the published formulas and with each other.
#include "gyre/schedule/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre {
namespace {

std::vector<Action> walk(const Schedule& schedule, int worker, int64_t limit) {
  std::vector<Action> actions;
  for (ProgramCursor cursor(schedule, worker, limit); cursor.peek(); cursor.advance())
    actions.push_back(*cursor.peek());
  return actions;
}

std::string text(const Schedule& schedule, int worker, int64_t limit) {
  std::string result;
  for (const Action& action : walk(schedule, worker, limit)) result += to_string(action, schedule.pipelines) + " ";
  return result;
}

TEST(Builders, SmallSchedulesReadAsInThePapers) {
  const Schedule gpipe = make_schedule({"gpipe", 2, 3});
  EXPECT_EQ(text(gpipe, 0, 3), "0F0 0F1 0F2 0B0 0B1 0B2 0U0 ");
  EXPECT_EQ(text(gpipe, 1, 6), "1F0 1F1 1F2 1B0 1B1 1B2 1U0 1F3 1F4 1F5 1B3 1B4 1B5 1U1 ");
  const Schedule flush = make_schedule({"1f1b", 3, 4});
  EXPECT_EQ(text(flush, 0, 4), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3 0U0 ");
  EXPECT_EQ(text(flush, 2, 4), "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2U0 ");
  const Schedule pipedream = make_schedule({"pipedream", 3, 1});
  EXPECT_EQ(text(pipedream, 0, 4), "0F0 0F1 0F2 0B0 0U0 0F3 0B1 0U1 0B2 0U2 0B3 0U3 ");
  EXPECT_EQ(text(pipedream, 2, 3), "2F0 2B0 2U0 2F1 2B1 2U1 2F2 2B2 2U2 ");
  EXPECT_EQ(text(make_schedule({"pipedream", 2, 2}), 0, 4), "0F0 0F1 0B0 0F2 0B1 0U0 0F3 0B2 0B3 0U1 ");
}

class EverySchedule : public ::testing::TestWithParam<std::string> {};

// Whether the schedule can serve so many stages and microbatches; all others must be refused with an error.
bool serves(const std::string& name, int stages, int64_t window) {
  if (name == "chimera") return stages % 2 == 0 && window % 2 == 0;
  if (name == "interleaved-1f1b") return stages % 2 == 0 && window % (stages / 2) == 0;
  if (name == "zb-v") return stages % 2 == 0;
  if (name == "dualpipe-v") return stages % 2 == 0 && window >= stages;
  if (name == "pipedream-2bw") return window >= stages;
  if (name == "amdp") return window >= (stages + 1) / 2 * 2;
  return true;
}

TEST_P(EverySchedule, IsValidForAnyStagesAndWindow) {
  for (int stages = 1; stages <= 12; ++stages) {
    for (int64_t window = 1; window <= 64; window += window < 16 ? 1 : 7) {
      if (serves(GetParam(), stages, window)) {
        EXPECT_NO_THROW(validate(make_schedule({GetParam(), stages, window}))) << stages << " " << window;
      } else {
        EXPECT_THROW(make_schedule({GetParam(), stages, window}), InputError) << stages << " " << window;
      }
    }
  }
}

TEST_P(EverySchedule, ARestrictionIsTheFilteredProgram) {
  for (int stages : {1, 2, 4, 5}) {
    for (int64_t window : {1, 2, 3, 4, 6}) {
      if (!serves(GetParam(), stages, window)) continue;
      const Schedule schedule = make_schedule({GetParam(), stages, window});
      for (int64_t n = 0; n <= 12 * window; n += window) {
        for (int worker = 0; worker < schedule.workers; ++worker) {
          std::vector<Action> filtered;
          for (const Action& action : walk(schedule, worker, 40 * window)) {
            if (action.is_per_window() ? (action.microbatch + 1) * window <= n : action.microbatch < n)
              filtered.push_back(action);
          }
          EXPECT_EQ(walk(schedule, worker, n), filtered);
          // Restricting a cursor midway gives the same as restricting it from the start.
          ProgramCursor cursor(schedule, worker);
          std::vector<Action> late;
          for (size_t i = 0; i < filtered.size() / 2; ++i, cursor.advance()) late.push_back(*cursor.peek());
          if (late ==
              std::vector<Action>(filtered.begin(), filtered.begin() + static_cast<std::ptrdiff_t>(late.size()))) {
            for (cursor.restrict_to(n); cursor.peek(); cursor.advance()) late.push_back(*cursor.peek());
            EXPECT_EQ(late, filtered);
          }
        }
      }
    }
  }
}

TEST_P(EverySchedule, TextComesBackTheSame) {
  for (int stages : {2, 4}) {
    const Schedule schedule = make_schedule({GetParam(), stages, 4});
    const std::string written = to_text(schedule);
    const Schedule read = parse_schedule(written, "memory");
    EXPECT_EQ(to_text(read), written);
    EXPECT_EQ(read.weights, schedule.weights);
    for (int worker = 0; worker < schedule.workers; ++worker) {
      EXPECT_EQ(walk(read, worker, 32), walk(schedule, worker, 32));
    }
    EXPECT_NO_THROW(validate(read));
  }
}

TEST_P(EverySchedule, EveryCorruptedCharacterIsReadOrRefused) {
  const std::string written = to_text(make_schedule({GetParam(), 2, 4}));
  for (size_t i = 0; i < written.size(); ++i) {
    for (const char c : {'0', '9', 'x', ' ', '\n', '-', '|', ':', 'F', 'U'}) {
      std::string corrupt = written;
      corrupt[i] = c;
      try {
        validate(parse_schedule(corrupt, "file"));
      } catch (const InputError& error) {
        EXPECT_FALSE(std::string(error.what()).empty());
      }
    }
  }
}

// Where updates wait for the gradients of all stages, a worker must have done its own.
TEST_P(EverySchedule, ChangesNoWeightsBeforeItsBackwardsIfItHasAFlush) {
  for (const int replicas : {1, 2}) {
    const Schedule schedule = make_schedule({GetParam(), 4, 4, replicas});
    EXPECT_FALSE(schedule.has_flush() && early_change(schedule)) << replicas;
  }
}

INSTANTIATE_TEST_SUITE_P(Builtin, EverySchedule, ::testing::ValuesIn(schedule_names()));

// Stage 1 takes microbatch 1 first, while stage 0 waits for the gradient of microbatch 0.
Schedule crossed(const std::string& kinds) {
  Schedule schedule = make_schedule({"zb-h1", 2, 2});
  const auto fill = [&](int stage, const std::vector<int>& order) {
    std::string text;
    Program& program = schedule.programs[static_cast<size_t>(stage)];
    program = {};
    for (const int m : order) {
      for (const char kind : kinds) program.period.push_back({static_cast<ActionKind>(kind), 0, stage, m});
    }
    program.period.push_back({ActionKind::Update, 0, stage, 0});
  };
  fill(0, {0, 1});
  fill(1, {1, 0});
  return schedule;
}

TEST(Validate, NamesTheHalfOfABackwardThatIsMissing) {
  for (const auto& [kinds, needs] :
       {std::pair("FB", "0B0 on worker 0: deadlock: it needs 1B0, but worker 1 is at 1F1"),
        std::pair("FIW", "0I0 on worker 0: deadlock: it needs 1I0, but worker 1 is at 1F1")}) {
    try {
      validate(crossed(kinds));
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(needs));
    }
  }
}

// DualPipeV splits some backwards of a stage and leaves others whole.
TEST(Backward, IsFoundAsTheProgramHasIt) {
  const Schedule schedule = make_schedule({"dualpipe-v", 4, 6});
  const int64_t microbatches = 3 * schedule.shift;
  int64_t halves = 0, wholes = 0;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action& action = *cursor.peek();
      const bool is_whole = action.kind == ActionKind::Backward;
      if (!is_whole && action.kind != ActionKind::BackwardInput && action.kind != ActionKind::BackwardWeights) continue;
      for (const ActionKind half : {ActionKind::BackwardInput, ActionKind::BackwardWeights}) {
        if (!is_whole && half != action.kind) continue;
        EXPECT_EQ(backward_of(schedule, action.pipeline, action.stage, action.microbatch, half), action);
      }
      ++(is_whole ? wholes : halves);
    }
  }
  EXPECT_GT(halves, 0);
  EXPECT_GT(wholes, 0);
}

TEST(Validate, NamesTheOffendingAction) {
  Schedule schedule = make_schedule({"gpipe", 2, 2});
  std::swap(schedule.programs[1].period[0], schedule.programs[1].period[2]);  // 1B0 before 1F0
  try {
    validate(schedule);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1B0 on worker 1: deadlock: it needs 1F0"));
  }
  Schedule moved = make_schedule({"gpipe", 2, 2});
  std::swap(moved.programs[0].period, moved.programs[1].period);
  try {
    validate(moved);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1F0 on worker 0: the placement says worker 1"));
  }
}

TEST(Validate, ShowsTheProgramsAroundTheOffendingAction) {
  Schedule schedule = make_schedule({"gpipe", 40, 2});
  for (const size_t worker : {0, 20, 39}) {
    Schedule bad = schedule;
    std::swap(bad.programs[worker].period[0], bad.programs[worker].period[2]);  // a backward before its forward
    try {
      validate(bad);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(fmt::format("\n  worker {:<3} {:>6}B0", worker, worker)));
      EXPECT_EQ(std::ranges::count(std::string(error.what()), '\n'), 16);
    }
  }
}

TEST(Validate, FindsADeadlockAcrossWorkers) {
  // Each worker's order is valid by itself, but together they wait for each other.
  Schedule schedule = make_schedule({"gpipe", 2, 2});
  const auto a = [](const char* text) { return parse_action(text, 1); };
  schedule.programs[0].period = {a("0F0"), a("0B0"), a("0F1"), a("0B1"), a("0U0")};
  schedule.programs[1].period = {a("1F0"), a("1F1"), a("1B0"), a("1B1"), a("1U0")};
  try {
    validate(schedule);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("deadlock"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("0B0 on worker 0"));
  }
}

TEST(EarlyChange, IsAnUpdateBeforeABackwardOfTheSameWindow) {
  const auto schedule_with = [](const std::string& first_worker) {
    return parse_schedule(fmt::format("gyre-schedule 1\nname early\nstages 4\npipelines 1\nworkers 2\nwindow 1\n"
                                      "shift 1\nkind training\nweights stash\nplacement 0 1 0 1\nowner 0 1 0 1\n"
                                      "worker 0: {}\nworker 1: 1F0 3F0 3B0 1B0 1U0 3U0\n",
                                      first_worker),
                          "file");
  };
  EXPECT_FALSE(early_change(schedule_with("0F0 2F0 2B0 0B0 2U0 0U0")));
  const Schedule early = schedule_with("0F0 2F0 2B0 2U0 0B0 0U0");
  EXPECT_NO_THROW(validate(early));
  EXPECT_TRUE(early.has_flush());
  const auto found = early_change(early);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(found->change, 1), "2U0");
  EXPECT_EQ(to_string(found->backward, 1), "0B0");
}

TEST(Validate, SplitBackwardsAreUnderstood) {
  Schedule schedule = make_schedule({"1f1b", 3, 4});
  for (Program& program : schedule.programs) {
    std::vector<Action> split;
    for (Action action : program.period) {
      if (action.kind == ActionKind::Backward) {
        action.kind = ActionKind::BackwardInput;
        split.push_back(action);
        action.kind = ActionKind::BackwardWeights;
      }
      split.push_back(action);
    }
    program.period = split;
  }
  EXPECT_NO_THROW(validate(schedule));
  std::swap(schedule.programs[2].period[1], schedule.programs[2].period[2]);  // W before I
  EXPECT_THROW(validate(schedule), InputError);
}

TEST(Delay, FollowsThePublishedTable) {
  for (int stages = 1; stages <= 12; ++stages) {
    for (int64_t window : {1, 2, 5, 16}) {
      for (const char* flush : {"gpipe", "1f1b"}) {
        const Schedule schedule = make_schedule({flush, stages, window});
        EXPECT_EQ(analyse_delays(schedule, 10 * window).max_delay, 0);
        EXPECT_TRUE(schedule.has_flush());
        const auto held = most_in_flight(schedule);
        for (int stage = 0; stage < stages; ++stage) {
          const int64_t expected = std::string(flush) == "gpipe" ? window : std::min<int64_t>(window, stages - stage);
          EXPECT_EQ(held[0][stage], expected);
        }
      }
    }
    const Schedule pipedream = make_schedule({"pipedream", stages, 1});
    EXPECT_EQ(pipedream.has_flush(), stages == 1);
    const DelayAnalysis analysis = analyse_delays(pipedream, 100);
    const auto held = most_in_flight(pipedream);
    for (int stage = 0; stage < stages; ++stage) {
      std::map<int64_t, int64_t> expected;
      for (int64_t m = 0; m < 100; ++m) ++expected[std::min<int64_t>(m, stages - 1 - stage)];
      EXPECT_EQ(analysis.delay[stage], expected);
      EXPECT_EQ(held[0][stage], stages - stage);
    }
  }
}

// The most microbatches that one replica holds, by a walk of its worker's program for it alone.
int64_t most_held_by(int pipeline, int stage, const Schedule& schedule) {
  int64_t held = 0, most = 0;
  ProgramCursor cursor(schedule, schedule.worker_of(pipeline, stage), representative_microbatches(schedule));
  for (; cursor.peek(); cursor.advance()) {
    const Action action = *cursor.peek();
    if (action.pipeline != pipeline || action.stage != stage) continue;
    if (action.kind == ActionKind::Forward) most = std::max(most, ++held);
    if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeights) --held;
  }
  return most;
}

TEST(InFlight, OneWalkPerWorkerFindsWhatOnePerReplicaFinds) {
  int schedules = 0;
  const auto check = [&](const Schedule& schedule, const std::string& what) {
    const auto found = most_in_flight(schedule);
    ASSERT_EQ(std::ssize(found), schedule.pipelines) << what;
    for (int pipeline = 0; pipeline < schedule.pipelines; ++pipeline) {
      ASSERT_EQ(std::ssize(found[pipeline]), schedule.stages) << what;
      for (int stage = 0; stage < schedule.stages; ++stage) {
        EXPECT_EQ(found[pipeline][stage], most_held_by(pipeline, stage, schedule)) << what << pipeline << " " << stage;
      }
    }
    ++schedules;
  };
  for (const std::string& name : schedule_names()) {
    for (const int stages : {1, 2, 4, 6}) {
      for (const int64_t window : {1, 4, 12, 13}) {
        for (const int replicas : {1, 3}) {
          for (const bool shard_optimizer : {false, true}) {
            Schedule schedule;
            try {
              schedule = make_schedule({.name = name,
                                        .stages = stages,
                                        .window = window,
                                        .replicas = replicas,
                                        .shard_optimizer = shard_optimizer});
            } catch (const InputError&) {
              continue;  // the schedule does not serve this depth or window
            }
            const std::string what = fmt::format("{} {} {} {} ", name, stages, window, replicas);
            check(schedule, what);
            check(build_forward_only(schedule), what + "forward-only ");
          }
        }
      }
    }
  }
  EXPECT_GT(schedules, 300);
}

TEST(Delay, LongestAreThoseOfAFullPipeline) {
  const LongestDelays pipedream = longest_delays(make_schedule({"pipedream", 5, 1}));
  EXPECT_EQ(pipedream.delay, (std::vector<int64_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(pipedream.mismatch, pipedream.delay) << "if backwards read the newest version";
  EXPECT_EQ(longest_delays(make_schedule({"1f1b", 5, 8})).delay, std::vector<int64_t>(5, 0));
  EXPECT_EQ(longest_delays(make_schedule({"pipedream-2bw", 5, 8})).delay, std::vector<int64_t>(5, 1));
}

TEST(Delay, MeansAreThoseOfAFullPipeline) {
  EXPECT_EQ(mean_delays(make_schedule({"pipedream", 5, 1})), (std::vector<double>{4, 3, 2, 1, 0}));
  EXPECT_EQ(mean_delays(make_schedule({"pipedream", 5, 4})).back(), 0);
  EXPECT_EQ(mean_delays(make_schedule({"1f1b", 5, 8})), std::vector<double>(5, 0));
  EXPECT_EQ(mean_delays(make_schedule({"pipedream-2bw", 5, 8})), std::vector<double>(5, 1));
  // If the microbatches of a window differ: the mean over a long run, of which filling is a small part.
  for (const char* name : {"pipedream", "paci", "amdp"}) {
    const Schedule schedule = make_schedule({name, 4, 16});
    const DelayAnalysis analysis = analyse_delays(schedule, 16000);
    const std::vector<double> means = mean_delays(schedule);
    for (int stage = 0; stage < 4; ++stage) {
      double sum = 0;
      for (const auto& [delay, count] : analysis.delay[stage]) sum += static_cast<double>(delay * count);
      EXPECT_NEAR(means[stage], sum / 16000, 4e-3) << name << ", stage " << stage;
    }
  }
}

TEST(Delay, AMillionMicrobatchesCostNoMemory) {
  const DelayAnalysis analysis = analyse_delays(make_schedule({"pipedream", 4, 1}), 1'000'000);
  EXPECT_EQ(analysis.delay[0].at(3), 1'000'000 - 3);
}

TEST(Action, TextIsStrict) {
  EXPECT_EQ(to_string(parse_action("2F17", 1), 1), "2F17");
  EXPECT_EQ(to_string(parse_action("1:2F17", 2), 2), "1:2F17");
  for (const char* bad : {"", "F", "2F", "F1", "02F1", "2F01", "-2F1", "2F-1", "2f1", "2X1", "2F1 ", " 2F1", "1:2F1",
                          "2F99999999999999999999"}) {
    EXPECT_THROW(parse_action(bad, 1), InputError) << bad;
  }
  EXPECT_THROW(parse_action("2:2F1", 2), InputError);
  EXPECT_THROW(parse_action("2F1", 2), InputError);
}

TEST(Builders, UnknownNameSuggestsTheNearest) {
  try {
    make_schedule({"pipedraem", 2, 1});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean 'pipedream'?"));
  }
  EXPECT_THROW(make_schedule({"gpipe", 0, 1}), InputError);
  EXPECT_THROW(make_schedule({"gpipe", 1, 0}), InputError);
}

TEST(Text, ErrorsSayWhere) {
  for (const char* stages : {"two", "02", "-0", ""}) {
    try {
      parse_schedule(fmt::format("gyre-schedule 1\nname x\nstages {}\npipelines 1\n", stages), "mine.txt");
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith("mine.txt:3: expected a whole number"));
    }
  }
}

}  // namespace
}  // namespace gyre
