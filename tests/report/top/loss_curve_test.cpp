// The losses that gyre top draws: a few thousand, whose curve is that of all.
#include "gyre/report/top/loss_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

using ::testing::Contains;

// Of the updates from 1.
LossCurve curve_of(int64_t updates) {
  LossCurve curve;
  for (int64_t update = 1; update <= updates; ++update) {
    const double loss = update == 12'345 ? 99 : update == 23'456 ? -99 : 1.0 / static_cast<double>(update);
    curve.add({update, loss});
  }
  return curve;
}

TEST(LossCurve, HasAllLossesOfAShortRun) {
  EXPECT_TRUE(LossCurve().points().empty());
  for (const int64_t updates : {1, 2, 3, 8192}) {
    const auto points = curve_of(updates).points();
    ASSERT_EQ(std::ssize(points), updates);
    for (int64_t update = 1; update <= updates; ++update) {
      ASSERT_EQ(points[static_cast<size_t>(update - 1)], LossPoint(update, 1.0 / static_cast<double>(update)));
    }
  }
}

TEST(LossCurve, KeepsTheShapeOfALongRun) {
  for (const int64_t updates : {30'000, 65'537, 100'001, 1'000'000}) {
    const auto points = curve_of(updates).points();
    EXPECT_GE(points.size(), LossCurve::kMostStretches) << updates;
    EXPECT_LE(points.size(), 2 * LossCurve::kMostStretches + 3) << updates;
    EXPECT_EQ(points.front().first, 1);
    EXPECT_EQ(points.back().first, updates);
    EXPECT_THAT(points, Contains(LossPoint(12'345, 99)));
    EXPECT_THAT(points, Contains(LossPoint(23'456, -99)));
    // Evenly spread, and in order.
    for (size_t i = 1; i < points.size(); ++i) {
      ASSERT_LT(points[i - 1].first, points[i].first) << updates;
      const double share = static_cast<double>(i) / static_cast<double>(points.size());
      ASSERT_NEAR(static_cast<double>(points[i].first) / static_cast<double>(updates), share, 2e-3) << updates;
    }
  }
}

}  // namespace
}  // namespace gyre
