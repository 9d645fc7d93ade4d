// How the traces of a run's segments are joined.
#include "gyre/train/measurements.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "gyre/runtime/segment.h"
#include "gyre/schedule/builders.h"
#include "gyre/schedule/schedule_settings.h"

namespace gyre {
namespace {

SegmentReport report_with(std::vector<TimedAction> trace) {
  SegmentReport report;
  report.workers.resize(1);
  report.workers[0].trace = std::move(trace);
  return report;
}

TEST(RunMeasurements, ASegmentsTraceBeginsAfterTheOneBefore) {
  const Schedule schedule = make_schedule({"1f1b", 1, 1});
  Segment segment;
  segment.schedule = &schedule;
  RunMeasurements measurements;
  measurements.add(segment, report_with({{parse_action("0F0", 1), 0.5, 2, {}}}), 0);
  // The first took 1.75 s by its own account.
  measurements.add(segment, report_with({{parse_action("0F0", 1), 0, 1, 0.25}}), 1.75);
  measurements.add(segment, report_with({{parse_action("0F0", 1), 0.25, 1, {}}}), 4);
  const auto& trace = measurements.trace()[0];
  ASSERT_EQ(trace.size(), 3u);
  EXPECT_EQ(trace[0].start, 0.5);
  EXPECT_EQ(trace[1].start, 2);
  EXPECT_EQ(trace[1].end, 3);
  EXPECT_EQ(trace[1].came, 2.25);
  EXPECT_EQ(trace[2].start, 4.25);
}

}  // namespace
}  // namespace gyre
