// Tests the partition against brute force, and that it never drops a layer.
#include "gyre/plan/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <string>
#include <tuple>
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

// A cut by its criteria, of which the costliest stage is compared by itself, and the ends of its stages.
struct Cut {
  double worst = kNone, late = kNone, squares = kNone;
  std::vector<int> ends;
  static constexpr double kNone = 1e300;
};

// Of every number of first layers the best cut into `stages` stages that cost at most `limit`, found by visiting all
// ranges of all stages. Of equal ones, that whose last stage begins first.
template <typename IsBetter>
std::vector<Cut> best_cuts(const std::vector<double>& costs, int stages, const std::vector<double>& delays,
                           double limit, IsBetter is_better) {
  std::vector<double> before{0};
  for (const double cost : costs) before.push_back(before.back() + cost);
  std::vector<Cut> best(before.size());
  best[0] = {0, 0, 0, {}};
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Cut> next(before.size());
    for (size_t end = 1; end < before.size(); ++end) {
      for (size_t begin = 0; begin < end; ++begin) {
        const Cut& rest = best[begin];
        const double work = before[end] - before[begin], delay = delays.empty() ? 0 : delays[stage];
        if (work > limit || rest.worst == Cut::kNone) continue;
        Cut found{std::max(rest.worst, work), rest.late + work * delay, rest.squares + work * work, rest.ends};
        found.ends.push_back(static_cast<int>(end));
        if (is_better(found, next[end])) next[end] = found;
      }
    }
    best = next;
  }
  return best;
}

TEST(Partition, IsTheOneFoundByVisitingAllRanges) {
  RandomStream stream(2, StreamPurpose::Test, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + stream.below(24));
    for (double& cost : costs) {
      // Fractions, a few values that make equal cuts, and layers that cost nothing.
      const double fraction = static_cast<double>(1 + stream.below(1000)) / 7;
      const std::vector<double> kinds{fraction, 0.1, 0.3, 0};
      cost = kinds[stream.below(round % 2 == 0 ? 4 : 1)];
    }
    const int stages = 1 + static_cast<int>(stream.below(costs.size()));
    std::vector<double> delays(round % 3 == 0 ? 0 : static_cast<size_t>(stages));
    for (double& delay : delays) delay = static_cast<double>(stream.below(4));
    const double least =
        best_cuts(costs, stages, delays, 1e200, [](const Cut& a, const Cut& b) { return a.worst < b.worst; })
            .back()
            .worst;
    const Cut best = best_cuts(costs, stages, delays, least, [](const Cut& a, const Cut& b) {
                       return std::tie(a.late, a.squares) < std::tie(b.late, b.squares);
                     }).back();
    std::vector<int> ends;
    for (const LayerRange& range : partition_by_cost(costs, stages, delays)) ends.push_back(range.end);
    EXPECT_EQ(ends, best.ends) << "round " << round;
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

// In time that grows with the number of layers, not with its square: that would be minutes.
TEST(Partition, VeryManyLayersAreCutAtOnce) {
  std::vector<double> costs(400'000);
  for (size_t layer = 0; layer < costs.size(); ++layer) costs[layer] = layer % 2 == 0 ? 1 : 2;
  const std::vector<double> delays{3, 2, 1, 0};
  std::vector<int> ends;
  for (const LayerRange& range : partition_by_cost(costs, 4, delays)) ends.push_back(range.end);
  EXPECT_THAT(ends, ::testing::ElementsAre(100'000, 200'000, 300'000, 400'000));
}

TEST(Partition, CostsAndDelaysThatAreNoNumbersAreErrors) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {nan, infinity, -1.0}) {
    EXPECT_THROW(partition_by_cost(std::vector<double>{1, wrong, 3}, 3), InputError) << wrong;
  }
  const std::vector<double> costs{1, 2, 3};
  EXPECT_THROW(partition_by_cost(costs, 2, std::vector<double>{1, nan}), InputError);
  EXPECT_THROW(partition_by_cost(costs, 2, std::vector<double>{1}), InputError);
}

TEST(Partition, MoreStagesThanLayersIsAnError) {
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 3), InputError);
  EXPECT_THROW(partition_by_cost(std::vector<double>{1, 2}, 0), InputError);
}

}  // namespace
}  // namespace gyre
