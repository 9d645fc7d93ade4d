// Tests reading traces: the reasons of waits, arrows, and what thinning keeps.
#include "gyre/report/trace_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/trace.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule_settings.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

TimedAction timed(const char* action, double start, double end, std::optional<double> came = {}) {
  return {parse_action(action, 1), start, end, came};
}

// Reason and length, in seconds.
std::vector<std::pair<std::string, double>> waits_of(const TraceTrack& track) {
  std::vector<std::pair<std::string, double>> all;
  for (const TraceWait& wait : track.waits) all.emplace_back(to_string(wait.reason), (wait.end - wait.start) / 1e6);
  return all;
}

TEST(TraceReader, SaysWhatWasWaitedFor) {
  const Schedule schedule = make_schedule({"1f1b", 2, 1});
  const Trace trace =
      parse_trace(trace_text(schedule, {{timed("0F0", 0, 1), timed("0B0", 4, 5, 3.75), timed("0U0", 6, 7)},
                                        {timed("1F0", 2, 3, 1.5), timed("1B0", 3, 3.5), timed("1U0", 3.5, 4)}}),
                  "trace");
  ASSERT_EQ(trace.tracks.size(), 2u);
  EXPECT_EQ(trace.tracks[0].name, "worker 0");
  EXPECT_EQ(trace.tracks[0].slices[1].name, "0B0");
  EXPECT_EQ(trace.tracks[1].slices[0].stage, 1);
  EXPECT_EQ(trace.total, 6);
  using Waits = std::vector<std::pair<std::string, double>>;
  // The gradient was ready at 3.5 and arrived at 3.75; then the worker started late.
  EXPECT_EQ(waits_of(trace.tracks[0]), (Waits{{"gradient", 2.5}, {"link", 0.25}, {"other", 0.25}, {"update", 1}}));
  EXPECT_EQ(waits_of(trace.tracks[1]), (Waits{{"activation", 1}, {"link", 0.5}, {"other", 0.5}, {"end", 3}}));
  EXPECT_EQ(trace.tracks[0].waits[0].from, 1);
  ASSERT_EQ(trace.arrows.size(), 2u);
  EXPECT_FALSE(trace.arrows[0].is_gradient);
  EXPECT_EQ(trace.arrows[0].sent, 1e6);
  EXPECT_EQ(trace.arrows[1].taken, 4e6);
}

TEST(TraceReader, ReadsOtherProgramsTraces) {
  const Trace trace = parse_trace(
      R"([{"ph":"X","name":"step","pid":"a","tid":"main","ts":5,"dur":2,"args":{"name":"no","stage":{"stage":9}}},
          {"ph":"X","name":"other","pid":"a","tid":"more","ts":9,"dur":-3}])",
      "trace");
  ASSERT_EQ(trace.tracks.size(), 2u);
  EXPECT_EQ(trace.begin, 5);
  EXPECT_EQ(trace.end, 9);
  EXPECT_EQ(trace.tracks[0].slices[0].stage, -1);
}

// Programs that write a slice when it ends write what lies in it before.
TEST(TraceReader, ASliceComesBeforeThoseThatLieInIt) {
  const Trace trace = parse_trace(
      R"([{"ph":"X","name":"none","ts":5,"dur":0},{"ph":"X","name":"inner","ts":5,"dur":2},
          {"ph":"X","name":"outer","ts":5,"dur":9},{"ph":"X","name":"none too","ts":5,"dur":0},
          {"ph":"X","name":"first","ts":1,"dur":4}])",
      "trace");
  std::vector<std::string> names;
  for (const TraceSlice& slice : trace.tracks[0].slices) names.push_back(slice.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "none", "none too", "outer", "inner"}));
}

TEST(TraceReader, AFileIsReadInBlocks) {
  const testing_support::TemporaryDirectory directory;
  std::string text = "[";
  for (int i = 0; i < 50'000; ++i) {
    text += fmt::format(R"({}{{"ph":"X","name":"0F{}","ts":{},"dur":1}})", i == 0 ? "" : ",", i, i * 2);
  }
  ASSERT_GT(text.size(), size_t{2} << 20);
  for (const char* end : {"]", "]\n", ""}) {
    write_file_atomic(directory / "trace.json", text + end);
    if (*end == '\0') {
      EXPECT_THROW(read_trace(directory / "trace.json"), InputError) << "cut short";
      continue;
    }
    const Trace trace = read_trace(directory / "trace.json");
    EXPECT_EQ(trace.total, 50'000);
    EXPECT_EQ(trace.tracks[0].slices.back().name, "0F49999");
  }
  write_file_atomic(directory / "trace.json", "");
  EXPECT_THROW(read_trace(directory / "trace.json"), InputError);
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
  for (const char* text : {"", "{", "[]", "{}", R"({"traceEvents":[]})", R"({"traceEvents":{"ph":"X"}})",
                           "\"traceEvents\"", R"({"otherEvents":[{"ph":"X","name":"0F0","ts":1,"dur":1}]})"}) {
    EXPECT_THROW(parse_trace(text, "trace"), InputError) << text;
  }
}

TEST(TraceReader, AMillionSlicesAreThinnedToStretchesThatAreWhole) {
  std::string text = "[";
  for (int i = 0; i < 1'000'000; ++i) {
    text += fmt::format(R"({}{{"ph":"X","name":"0F{}","tid":{},"ts":{},"dur":1}})", i == 0 ? "" : ",", i, i % 4, i * 2);
  }
  const Trace whole = parse_trace(text + "]", "trace");
  EXPECT_EQ(whole.total, 1'000'000);
  const Trace kept = thinned(whole, 150'000);
  EXPECT_EQ(kept.total, 1'000'000);
  int64_t count = 0;
  for (const TraceTrack& track : kept.tracks) {
    for (const TraceSlice& slice : track.slices) {
      ++count;
      for (const auto& [from, to] : kept.left_out) EXPECT_FALSE(slice.start > from && slice.end < to) << slice.start;
    }
  }
  EXPECT_NEAR(static_cast<double>(count), 150'000, 1000);
  EXPECT_EQ(thinned(whole, 1'000'000).left_out.size(), 0u);
}

TEST(TraceReader, OfATraceInWhichNoTimePassesNothingIsLeftOut) {
  std::string text = "[";
  for (int i = 0; i < 9; ++i) text += fmt::format(R"({}{{"ph":"X","name":"0F{}","ts":7}})", i == 0 ? "" : ",", i);
  EXPECT_EQ(thinned(parse_trace(text + "]", "trace"), 5).tracks[0].slices.size(), 9u);
}

}  // namespace
}  // namespace gyre
