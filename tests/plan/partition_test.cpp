// Tests the partition against brute force, and that it never drops a layer.
#include "gyre/plan/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

// The criteria of a cut, the most important first.
struct Worth {
  double costliest = 0, late = 0, squares = 0;
  auto operator<=>(const Worth&) const = default;
};

Worth worth(const std::vector<double>& costs, const std::vector<LayerRange>& ranges,
            const std::vector<double>& delays) {
  Worth result;
  for (size_t stage = 0; stage < ranges.size(); ++stage) {
    double cost = 0;
    for (int layer = ranges[stage].begin; layer < ranges[stage].end; ++layer) cost += costs[layer];
    result.costliest = std::max(result.costliest, cost);
    result.late += cost * (delays.empty() ? 0 : delays[stage]);
    result.squares += cost * cost;
  }
  return result;
}

// The best over all cuts of the layers after `ranges` into `stages` more.
Worth brute_force(const std::vector<double>& costs, std::vector<LayerRange> ranges, int stages,
                  const std::vector<double>& delays) {
  const int layers = static_cast<int>(costs.size()), begin = ranges.empty() ? 0 : ranges.back().end;
  ranges.push_back({begin, layers});
  if (stages == 1) return worth(costs, ranges, delays);
  Worth best{1e300, 1e300, 1e300};
  for (int end = begin + 1; end + stages - 1 <= layers; ++end) {
    ranges.back().end = end;
    best = std::min(best, brute_force(costs, ranges, stages - 1, delays));
  }
  return best;
}

TEST(Partition, IsAsGoodAsBruteForceAndWhole) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> costs(1 + stream.below(10));
    for (double& cost : costs) cost = static_cast<double>(1 + stream.below(round % 2 == 0 ? 3 : 20));
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      std::vector<double> falling(stages), any(stages);
      for (int stage = 0; stage < stages; ++stage) {
        falling[stage] = stages - 1 - stage;
        any[stage] = static_cast<double>(stream.below(4));
      }
      for (const auto& delays : {std::vector<double>{}, falling, any}) {
        const auto ranges = partition_by_cost(costs, stages, delays);
        ASSERT_EQ(static_cast<int>(ranges.size()), stages);
        int next = 0;
        for (const LayerRange& range : ranges) {
          EXPECT_EQ(range.begin, next);
          EXPECT_GT(range.end, range.begin);
          next = range.end;
        }
        EXPECT_EQ(next, static_cast<int>(costs.size()));
        // All are whole numbers, so that comparisons are exact.
        EXPECT_EQ(worth(costs, ranges, delays), brute_force(costs, {}, stages, delays));
      }
    }
  }
}

// The lengths of the stages' ranges, for layers that cost 1, except the last, which costs 3.
std::vector<int> lengths(const std::string& schedule, int layers) {
  std::vector<double> costs(layers, 1);
  costs.back() = 3;
  std::vector<int> result;
  for (const LayerRange range : partition_by_cost(costs, make_schedule({.name = schedule, .stages = 4, .window = 4}))) {
    result.push_back(range.end - range.begin);
  }
  return result;
}

TEST(Partition, AmongEquallyDearTakesTheMoreEvenWithoutDelay) {
  using ::testing::ElementsAre;
  EXPECT_THAT(lengths("1f1b", 7), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(lengths("amdp", 7), ElementsAre(2, 2, 2, 1)) << "a worker holds a late stage and an early one";
  EXPECT_THAT(lengths("pipedream-2bw", 7), ElementsAre(2, 2, 2, 1)) << "all stages are as late";
}

TEST(Partition, AmongEquallyDearTakesTheLeastLate) {
  EXPECT_THAT(lengths("pipedream", 7), ::testing::ElementsAre(1, 2, 3, 1));
}

TEST(Partition, MoreStagesThanLayersIsAnError) {
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 3), InputError);
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 0), InputError);
}

}  // namespace
}  // namespace gyre
