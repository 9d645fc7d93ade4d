// Tests what a run took in all: over its sessions, and over those of which there is a record.
#include "gyre/report/run_totals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace gyre {
namespace {

std::string step(int64_t number, double seconds, int64_t tokens) {
  return fmt::format("{{\"event\":\"step\",\"step\":{},\"tokens\":{},\"seconds\":{}}}\n", number, tokens, seconds);
}
std::string segment(double seconds, const std::string& bubbles) {
  return fmt::format("{{\"event\":\"segment\",\"step\":1,\"seconds\":{},\"bubbles\":{}}}\n", seconds, bubbles);
}
std::string resume(int64_t at) {
  return fmt::format("{{\"event\":\"resume\",\"step\":{}}}\n", at);
}
std::string end(double seconds) {
  return fmt::format(
      "{{\"event\":\"end\",\"step\":1,\"tokens_per_second\":3,\"bubble_fraction\":0.9,\"seconds\":{}}}\n", seconds);
}

RunTotals totals_of(const std::string& metrics) {
  TotalsCollector totals;
  for_each_metrics_line(metrics, "metrics", "", [&](const MetricsLine& line) { totals.take(line); });
  return totals.totals();
}

TEST(RunTotals, SessionsAddUp) {
  const std::string first = step(1, 2, 100) + step(2, 9, 800) + segment(8, "[0.25,0.5]");
  RunTotals totals = totals_of(first + end(12));
  EXPECT_EQ(totals.seconds, 12) << "with the last evaluation and the last save";
  EXPECT_EQ(totals.earlier_seconds, 0);
  EXPECT_EQ(totals.tokens_per_second, 100);
  EXPECT_EQ(totals.bubble_fraction, 0.375);

  totals = totals_of(first + resume(2) + step(3, 3, 880) + segment(2, "[0.75,1]") + end(4));
  EXPECT_EQ(totals.seconds, 13);
  EXPECT_EQ(totals.earlier_seconds, 9);
  EXPECT_EQ(totals.tokens_per_second, 88);
  EXPECT_EQ(totals.bubble_fraction, 0.475) << "by the segments' times";
}

TEST(RunTotals, WhatIsNotRecordedDoesNotCount) {
  EXPECT_FALSE(totals_of(step(1, 2, 100)).tokens_per_second);
  EXPECT_FALSE(totals_of(step(1, 2, 100) + segment(1, "[]")).bubble_fraction) << "workers took turns";
  EXPECT_EQ(totals_of(step(1, 2, 100) + segment(1, "[]") + step(2, 4, 300) + segment(1, "[0.5,null]")).bubble_fraction,
            0.5);
  // The file was emptied: the tokens of the updates before are not those of the first segment.
  const std::string emptied = resume(50) + step(51, 1, 5100) + segment(1, "[]");
  EXPECT_FALSE(totals_of(emptied).tokens_per_second);
  EXPECT_EQ(totals_of(emptied + step(52, 3, 5200) + segment(2, "[]")).tokens_per_second, 50);
}

}  // namespace
}  // namespace gyre
