// Random schedules: every mutation of a valid file and every random choice of a builder's options is either refused
// with an InputError or gives a schedule that does all its work. Absurd sizes are refused at once and without using
// memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/schedule_settings.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"
#include "schedule/refusal.h"

namespace gyre {
namespace {

using testing_support::refusal;

using ::testing::HasSubstr;

// The oracle: counts one by one what an accepted schedule must do.
void expect_whole(const Schedule& schedule, const std::string& what) {
  const int64_t microbatches = representative_microbatches(schedule);
  std::map<std::tuple<ActionKind, int, int64_t>, int> times;  // kind, stage, number; without adoptions
  for (int worker = 0; worker < schedule.workers; ++worker) {
    for (ProgramCursor cursor(schedule, worker, microbatches); cursor.peek(); cursor.advance()) {
      const Action action = *cursor.peek();
      if (action.kind != ActionKind::Adopt) ++times[{action.kind, action.stage, action.microbatch}];
    }
  }
  const auto count = [&](ActionKind kind, int stage, int64_t number) {
    const auto found = times.find({kind, stage, number});
    return found == times.end() ? 0 : found->second;
  };
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int64_t m = 0; m < microbatches; ++m) {
      ASSERT_EQ(count(ActionKind::Forward, stage, m), 1) << what;
      if (schedule.forward_only) continue;
      const int halves = count(ActionKind::BackwardInput, stage, m);
      ASSERT_EQ(count(ActionKind::Backward, stage, m) + halves, 1) << what;
      ASSERT_EQ(count(ActionKind::BackwardWeights, stage, m), halves) << what;
    }
    for (int64_t w = 0; w < microbatches / schedule.window && !schedule.forward_only; ++w) {
      ASSERT_EQ(count(ActionKind::Update, stage, w), 1) << what;
    }
  }
  ASSERT_NO_THROW(makespan(schedule, microbatches, ComputeCosts{})) << what;
  // A few repetitions show all delays of a long run.
  const DelayAnalysis delays = analyse_delays(schedule, 2 * microbatches);
  const LongestDelays longest = longest_delays(schedule);
  for (int stage = 0; stage < schedule.stages && !schedule.forward_only; ++stage) {
    ASSERT_EQ(longest.delay[stage], delays.delay[stage].rbegin()->first) << what;
    ASSERT_EQ(longest.mismatch[stage], delays.mismatch[stage].rbegin()->first) << what;
  }
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : stream_(seed, StreamPurpose::Test, 0) {}

  size_t below(size_t bound) { return stream_.below(bound); }

  // One change: of a character, a word, a number or a line.
  std::string mutate(const std::string& text, char word_end) {
    std::string result = text;
    const size_t at = below(text.size());
    switch (below(8)) {
      case 0:
        result[at] = random_character();
        break;
      case 1:
        result.insert(at, 1, random_character());
        break;
      case 2:
        result.erase(at, 1);
        break;
      case 3:
        replace_number(result, at);
        break;
      case 4:
        return with_two(text, '\n', [](std::string& a, std::string& b) { std::swap(a, b); });
      case 5:
        return with_two(text, word_end, [](std::string& a, std::string& b) { std::swap(a, b); });
      case 6:
        return with_two(text, word_end, [](std::string& a, std::string& b) { a = b; });
      default:
        return with_two(text, below(2) == 0 ? '\n' : word_end, [](std::string& a, std::string&) { a.clear(); });
    }
    return result;
  }

 private:
  char random_character() {
    constexpr std::string_view kLikely = "0123456789FBIWUA:|, \n-#x";  // characters of schedule files
    return below(4) == 0 ? static_cast<char>(below(256)) : kLikely[below(kLikely.size())];
  }

  void replace_number(std::string& text, size_t from) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    while (from < text.size() && !is_digit(text[from])) ++from;
    size_t end = from;
    while (end < text.size() && is_digit(text[end])) ++end;
    constexpr const char* kNumbers[] = {
        "0", "1", "2", "3", "7", "65536", "2147483648", "34359738367", "1000000000000000000", "99999999999999999999"};
    text.replace(from, end - from, kNumbers[below(std::size(kNumbers))]);
  }

  std::string with_two(const std::string& text, char end,
                       const std::function<void(std::string&, std::string&)>& change) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
      if (c == end) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    change(parts[below(parts.size())], parts[below(parts.size())]);
    std::string result = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) result += end + parts[i];
    return result;
  }

  RandomStream stream_;
};

// `read` is a parser; returns how many mutations were accepted.
template <typename Read>
int try_mutations(const std::string& text, char word_end, int draws, uint64_t seed, Read read) {
  Mutator mutator(seed);
  int accepted = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const std::string mutated = mutator.mutate(text, word_end);
    Schedule schedule;
    try {
      schedule = read(mutated, "file");
      validate(schedule);
    } catch (const InputError& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      continue;
    }
    ++accepted;
    expect_whole(schedule, mutated);
  }
  return accepted;
}

void mutate_all(int draws) {
  int all_accepted = 0;
  for (const std::string& name : schedule_names()) {
    for (const auto& [stages, window] : {std::pair{2, 4}, {4, 8}}) {
      const Schedule schedule = make_schedule({name, stages, window});
      const uint64_t seed = stable_hash(name) + static_cast<uint64_t>(stages);
      const int accepted = try_mutations(to_text(schedule), ' ', draws, seed, parse_schedule);
      EXPECT_LT(accepted, draws / 2) << name;
      all_accepted += accepted;
      if (schedule.pipelines == 1) try_mutations(to_csv(schedule, window), ',', draws, seed, parse_csv);
    }
  }
  EXPECT_GT(all_accepted, 0);  // for example mutations of a comment or the name
}

TEST(Mutations, OfAFileAreRefusedOrValid) {
  mutate_all(120);
}
TEST(Mutations, SlowManyOfAFileAreRefusedOrValid) {
  mutate_all(20'000);
}

void draw_options(int draws, uint64_t seed) {
  RandomStream stream(seed, StreamPurpose::Test, 1);
  const auto from = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(stream.below(static_cast<uint64_t>(most - least + 1)));
  };
  int built = 0;
  for (int draw = 0; draw < draws; ++draw) {
    for (const std::string& name : schedule_names()) {
      ScheduleOptions options;
      options.name = name;
      options.stages = static_cast<int>(from(0, 3) == 0 ? from(1, 64) : from(1, 12));
      options.window = from(0, 2) == 0 ? from(1, 6) * options.stages : from(0, 100);
      options.own = schedule_kinds().at(name).own;
      std::string own;
      options.own.each_option([&](const char* key, auto& field, const Range&, const char*) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, int64_t>) {
          if (from(0, 2) > 0) field = from(0, 19) == 0 ? 1'000'000 : from(-1, from(0, 3) == 0 ? 20 : 4);
          own += fmt::format(" {} {}", key, field);
        }
      });
      constexpr double kRatios[] = {1, 2, 2.5, 0.3, 7, 1000, 0, -1, 1e-9, std::numeric_limits<double>::infinity()};
      options.tb_over_tf = from(0, 20) == 0 ? std::nan("") : kRatios[from(0, from(0, 3) == 0 ? 9 : 4)];
      if (from(0, 2) == 0) options.replicas = static_cast<int>(from(0, 19) == 0 ? 100'000 : from(0, 5));
      const std::string what = fmt::format("{} stages {} window {} replicas {} ratio {}{}", name, options.stages,
                                           options.window, options.replicas, options.tb_over_tf, own);
      Schedule schedule;
      try {
        schedule = make_schedule(options);
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("schedule " + name)) << what;
        continue;
      }
      ++built;
      EXPECT_NO_THROW(validate(schedule)) << what;
      EXPECT_LE(count_actions(schedule, schedule.shift), kMostActions) << what;
    }
  }
  EXPECT_GT(built, draws);
}

TEST(Options, GiveAValidScheduleOrAreRefused) {
  draw_options(60, 1);
}
// Found by the slow test: without updates no worker waits, with them all do.
TEST(Options, PreloadsThatDeadlockAreRefused) {
  const ScheduleOptions options{.name = "amdp",
                                .stages = 12,
                                .window = 24,
                                .tb_over_tf = 1,
                                .own = AmdpSettings{.pipelines = 4, .intake = 2, .preload = 12}};
  EXPECT_THAT(refusal(options), HasSubstr("with preload at 12 workers wait for each other in a circle"));
}
TEST(Options, SlowManyGiveAValidScheduleOrAreRefused) {
  draw_options(3000, 2);
}

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Bounds, SizesWithoutSenseAreRefusedBeforeAnythingIsBuilt) {
  const int64_t before = peak_kilobytes();
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const std::string& name : schedule_names()) {
    EXPECT_THAT(refusal({name, 100'000, 100'000}), HasSubstr("stages is 100000; give 1 to 65536"));
    EXPECT_THAT(refusal({name, kMost, std::numeric_limits<int64_t>::max()}), HasSubstr("stages is"));
    EXPECT_THAT(refusal({name, 4, 1'000'000'000}), HasSubstr("the window is 1000000000; give 1 to 134217728"));
    EXPECT_THAT(refusal({name, 4, 100'000'000}), HasSubstr("; make the window ")) << name;
    EXPECT_THAT(refusal({name, 65'536, 65'536}), HasSubstr("actions")) << name;
    // Each of the schedule's own options, one at a time.
    for (size_t chosen = 0, count = 1; chosen < count; ++chosen) {
      ScheduleOptions options{.name = name, .stages = 4, .window = 8, .own = schedule_kinds().at(name).own};
      std::string wrong;
      count = 0;
      options.own.each_option([&](const char* key, auto& field, const Range&, const char*) {
        if (count++ != chosen) return;
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, int64_t>) {
          field = kMost;
          wrong = key;
        }
      });
      if (wrong.empty()) continue;
      EXPECT_THAT(refusal(options), HasSubstr(wrong + " is 2147483647; give"));
    }
  }
  EXPECT_THAT(refusal({.name = "amdp", .stages = 4, .window = 8, .own = AmdpSettings{.preload = 1'000'000}}),
              HasSubstr("preload is 1000000; give 0 to 7, or -1"));
  EXPECT_THAT(refusal({.name = "amdp", .stages = 4, .window = 8, .own = AmdpSettings{.preload = -5}}),
              HasSubstr("preload is -5"));
  EXPECT_THAT(refusal({.name = "amdp", .stages = 4096, .window = 4097}), HasSubstr("make the window 4096"));
  EXPECT_THAT(refusal({.name = "amdp", .stages = 64, .window = 100'000'000, .own = AmdpSettings{.intake = 65'536}}),
              HasSubstr("make intake, pipelines or stages smaller"));
  EXPECT_THAT(refusal({.name = "1f1b", .stages = 4, .window = 100'000'000, .names = {.window = "--window"}}),
              HasSubstr("make --window at most 16777215"));
  EXPECT_LT(peak_kilobytes() - before, 64 * 1024);
}

std::string file(const std::string& sizes, const std::string& programs) {
  return "gyre-schedule 1\nname x\n" + sizes + "kind training\nweights stash\nplacement 0\nowner 0\n" + programs;
}

TEST(Bounds, FilesWithNumbersWithoutSenseAreRefusedAtOnce) {
  const int64_t before = peak_kilobytes();
  const auto refusal = [](const std::string& text) { return complaint([&] { validate(parse_schedule(text, "f")); }); };
  const std::string one = "stages 1\npipelines 1\nworkers 1\nwindow 1\nshift 1\n";
  EXPECT_EQ(refusal(file(one, "worker 0: 0F0 0B0 0U0\n")), "accepted");
  for (const char* sizes :
       {"stages 2147483648\npipelines 1\nworkers 1\nwindow 1\nshift 1\n",
        "stages 1\npipelines 2147483648\nworkers 1\nwindow 1\nshift 1\n",
        "stages 1\npipelines 1\nworkers 2147483648\nwindow 1\nshift 1\n",
        "stages 1\npipelines 1\nworkers 1\nwindow 1000000000000000000\nshift 1000000000000000000\n"}) {
    EXPECT_THAT(refusal(file(sizes, "worker 0: 0F0 0B0 0U0\n")), HasSubstr("expected a whole number from 1 to"));
  }
  EXPECT_THAT(
      refusal(file("stages 1\npipelines 1\nworkers 1\nwindow 100000000\nshift 100000000\n", "worker 0: 0F0 0B0 0U0\n")),
      HasSubstr("0F1 on worker 0: is missing from the period, which is for 100000000 microbatches"));
  EXPECT_THAT(refusal(file(one, "worker 0: 0F1000000000000000000 0B0 0U0\n")), HasSubstr("is not an action"));
  EXPECT_THAT(refusal(file(one, "worker 0: 0F30000000000 | 0F0 0B0 0U0\n")),
              HasSubstr("0F30000000000 on worker 0: 0F0 does the same"));
  EXPECT_THAT(refusal(file(one, "worker 0: 0F30000000000 0B0 0U0\n")),
              HasSubstr("0F0 on worker 0: is missing before 0F30000000000"));
  EXPECT_THAT(refusal(file(one, "worker 0: 0F0 0B0 0U30000000000\n")), HasSubstr("is missing before 0U30000000000"));
  const auto csv = [](const char* text) { return complaint([&] { validate(parse_csv(text, "f")); }); };
  EXPECT_THAT(csv("0F1000000000000000000,0B0\n"), HasSubstr("is not an action"));
  EXPECT_THAT(csv("0F34359738367,0B0\n"), HasSubstr("microbatches are numbered to 134217727"));
  EXPECT_THAT(csv("0F134217727,0B0\n"),
              HasSubstr("0F0 on worker 0: is missing from the period, which is for 134217728 microbatches"));
  EXPECT_THAT(csv("65536F0,0B0\n"), HasSubstr("is not an action"));
  EXPECT_LT(peak_kilobytes() - before, 64 * 1024);
}

TEST(Bounds, WhatIsQuotedIsShown) {
  EXPECT_THAT(complaint([] { parse_action(std::string_view("0F\0\x1b", 4), 1); }), HasSubstr("'0F\\x00\\x1b'"));
}

TEST(Bounds, DeepPipelinesAreBuilt) {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule({name, 256, name == "pipedream" || name == "paci" ? 1 : 256});
    EXPECT_EQ(schedule.stages, 256);
  }
  EXPECT_NO_THROW(validate(make_schedule({"amdp", 301, 302})));
}

}  // namespace
}  // namespace gyre
