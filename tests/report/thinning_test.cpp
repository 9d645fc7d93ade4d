// A thinned curve keeps its ends and its extremes.
#include "gyre/report/thinning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gyre/report/run_curves.h"

namespace gyre {
namespace {

TEST(Thinning, KeepsEndsAndExtremes) {
  std::vector<CurvePoint> points;
  for (int64_t i = 1; i <= 10'000; ++i) points.push_back({i, i, 0, std::sin(static_cast<double>(i) / 300)});
  points[5000].value = 40;
  points[7001].value = -40;
  const auto kept = thinned(points, 200, &CurvePoint::value);
  EXPECT_LE(kept.size(), 200u);
  EXPECT_GT(kept.size(), 150u);
  EXPECT_EQ(kept.front().step, 1);
  EXPECT_EQ(kept.back().step, 10'000);
  const auto has = [&](int64_t number) {
    return std::any_of(kept.begin(), kept.end(), [&](const CurvePoint& point) { return point.step == number; });
  };
  EXPECT_TRUE(has(5001));
  EXPECT_TRUE(has(7002));
  for (size_t i = 1; i < kept.size(); ++i) EXPECT_LT(kept[i - 1].step, kept[i].step);
  EXPECT_EQ(thinned(points, 10'000, &CurvePoint::value).size(), 10'000u);
}

}  // namespace
}  // namespace gyre
