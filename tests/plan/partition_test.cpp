// The partition against brute force, and that it never drops a layer.
#include "gyre/plan/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/random.h"

namespace gyre {
namespace {

double costliest_stage(const std::vector<double>& costs, const std::vector<LayerRange>& ranges) {
  double costliest = 0;
  for (const LayerRange& range : ranges) {
    double cost = 0;
    for (int layer = range.begin; layer < range.end; ++layer) cost += costs[layer];
    costliest = std::max(costliest, cost);
  }
  return costliest;
}

// The best over all cuts of layers [begin, end) into `stages`.
double brute_force(const std::vector<double>& costs, int begin, int stages) {
  const int layers = static_cast<int>(costs.size());
  double cost = 0;
  if (stages == 1) {
    for (int layer = begin; layer < layers; ++layer) cost += costs[layer];
    return cost;
  }
  double best = 1e300;
  for (int end = begin + 1; end + stages - 1 <= layers; ++end) {
    cost += costs[end - 1];
    best = std::min(best, std::max(cost, brute_force(costs, end, stages - 1)));
  }
  return best;
}

TEST(Partition, IsAsGoodAsBruteForceAndWhole) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> costs(1 + stream.below(10));
    for (double& cost : costs) cost = static_cast<double>(1 + stream.below(20));
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      const auto ranges = partition_by_cost(costs, stages);
      ASSERT_EQ(static_cast<int>(ranges.size()), stages);
      int next = 0;
      for (const LayerRange& range : ranges) {
        EXPECT_EQ(range.begin, next);
        EXPECT_GT(range.end, range.begin);
        next = range.end;
      }
      EXPECT_EQ(next, static_cast<int>(costs.size()));
      EXPECT_DOUBLE_EQ(costliest_stage(costs, ranges), brute_force(costs, 0, stages));
    }
  }
}

TEST(Partition, AmongEquallyDearTakesTheMoreEven) {
  // One layer dominates: the rest is still spread.
  const auto ranges = partition_by_cost(std::vector<double>{10, 1, 1, 1, 1}, 3);
  EXPECT_EQ(ranges[1].end - ranges[1].begin, 2);
  EXPECT_EQ(ranges[2].end - ranges[2].begin, 2);
}

TEST(Partition, MoreStagesThanLayersIsAnError) {
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 3), InputError);
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 0), InputError);
}

}  // namespace
}  // namespace gyre
