// Tests a trace as the page gets it: a trace that is too long is thinned, and a note says so.
#include "gyre/report/html/timeline_part.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

Trace of_slices(int64_t tracks, int64_t each) {
  Trace trace;
  for (int64_t track = 0; track < tracks; ++track) {
    trace.tracks.push_back({});
    trace.tracks.back().name = fmt::format("worker {}", track);
    for (int64_t i = 0; i < each; ++i) {
      TraceSlice slice;
      slice.name = fmt::format("{}F{}", track, i);
      slice.category = "forward";
      slice.stage = track;
      slice.start = static_cast<double>(2 * i);
      slice.end = slice.start + 1;
      trace.tracks.back().slices.push_back(slice);
    }
  }
  trace.end = static_cast<double>(2 * each);
  trace.total = tracks * each;
  return trace;
}

TEST(TimelinePart, AMillionSlicesAreThinnedAndThatIsSaid) {
  std::vector<std::string> notes;
  const auto part = timeline_part(of_slices(8, 125'000), "large", false, notes);
  EXPECT_EQ(part["total"], 1'000'000);
  EXPECT_LE(part["kept"].get<int64_t>(), 150'000);
  EXPECT_GT(part["kept"].get<int64_t>(), 100'000);
  EXPECT_FALSE(part["left_out"].empty());
  EXPECT_EQ(part["shares"][0]["busy"], 125'000.0) << "of all, not of what is shown";
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(
      notes[0],
      fmt::format("large: the timeline shows {} of 1000000 actions, in {} stretches spread over the whole time; trace "
                  "fewer updates to see all",
                  part["kept"].get<int64_t>(), part["left_out"].size()));
}

TEST(TimelinePart, TimeInSlicesWithinOthersIsCountedOnce) {
  Trace trace = of_slices(1, 3);  // from 0, 2 and 4 on, each of length 1
  TraceSlice whole;
  whole.end = 3.5;
  trace.tracks[0].slices.insert(trace.tracks[0].slices.begin(), whole);
  ++trace.total;
  std::vector<std::string> notes;
  EXPECT_EQ(timeline_part(trace, "nested", false, notes)["shares"][0]["busy"], 4.5);
}

TEST(TimelinePart, AShortOneIsWhole) {
  std::vector<std::string> notes;
  const auto part = timeline_part(of_slices(2, 3), "short", true, notes);
  EXPECT_EQ(part["kept"], 6);
  EXPECT_EQ(part["tracks"][1]["names"], "1F0\n1F1\n1F2");
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace gyre
