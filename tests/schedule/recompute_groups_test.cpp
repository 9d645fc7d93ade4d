// Tests the groups of layers under recompute against all divisions there are.
#include "gyre/schedule/recompute_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gyre/core/random.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

// Bytes at once if the groups are those that begin at layer 0 and where `cuts` has a bit.
int64_t peak_of(const std::vector<LayerKeeps>& layers, uint64_t cuts, int64_t in_flight) {
  int64_t inputs = 0, group = 0, most = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i == 0 || (cuts >> i & 1) != 0) {
      most = std::max(most, group);
      group = inputs;
      inputs += layers[i].input;
    }
    group += layers[i].all;
  }
  return (in_flight - 1) * inputs + std::max(most, group);
}

uint64_t cuts_of(const std::vector<LayerRange>& groups) {
  uint64_t cuts = 0;
  for (const LayerRange& group : groups) cuts |= uint64_t{1} << group.begin;
  return cuts;
}

struct Best {
  int64_t peak = std::numeric_limits<int64_t>::max();
  size_t groups = 0;
};

Best best_of_all(const std::vector<LayerKeeps>& layers, int64_t in_flight) {
  Best best;
  for (uint64_t cuts = 1; cuts < uint64_t{1} << layers.size(); cuts += 2) {
    const int64_t peak = peak_of(layers, cuts, in_flight);
    const auto groups = static_cast<size_t>(__builtin_popcountll(cuts));
    if (peak < best.peak || (peak == best.peak && groups < best.groups)) best = {peak, groups};
  }
  return best;
}

// A transformer's layers hand on tensors of one size; only the first one reads another.
TEST(RecomputeGroups, NoDivisionNeedsLess) {
  RandomStream stream(1, StreamPurpose::Test, 0);
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<LayerKeeps> layers(1 + stream.below(10));
    const auto input = static_cast<int64_t>(1 + stream.below(8));
    for (LayerKeeps& layer : layers) layer = {input, input + static_cast<int64_t>(stream.below(60))};
    layers[0] = {static_cast<int64_t>(stream.below(3)), static_cast<int64_t>(3 + stream.below(3))};
    const auto in_flight = static_cast<int64_t>(1 + stream.below(draw % 2 == 0 ? 3 : 20));
    const auto groups = recompute_groups(layers, {.most = in_flight});
    const Best best = best_of_all(layers, in_flight);
    EXPECT_EQ(peak_of(layers, cuts_of(groups), in_flight), best.peak) << "draw " << draw;
    EXPECT_EQ(groups.size(), best.groups) << "draw " << draw;
  }
}

TEST(RecomputeGroups, AreNoWorseThanAllLayersTogetherWhateverTheirInputs) {
  RandomStream stream(2, StreamPurpose::Test, 0);
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<LayerKeeps> layers(1 + stream.below(12));
    for (LayerKeeps& layer : layers) {
      layer.input = static_cast<int64_t>(stream.below(20));
      layer.all = layer.input + static_cast<int64_t>(stream.below(60));
    }
    const auto in_flight = static_cast<int64_t>(1 + stream.below(6));
    const auto groups = recompute_groups(layers, {.most = in_flight});
    ASSERT_FALSE(groups.empty());
    EXPECT_EQ(groups.front().begin, 0);
    EXPECT_EQ(groups.back().end, static_cast<int>(layers.size()));
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_LT(groups[i].begin, groups[i].end);
      if (i > 0) {
        EXPECT_EQ(groups[i].begin, groups[i - 1].end);
      }
    }
    EXPECT_LE(peak_of(layers, cuts_of(groups), in_flight), peak_of(layers, 1, in_flight));
  }
}

TEST(RecomputeGroups, OfAlikeLayersAreAlikeAndMoreMicrobatchesMakeThemLarger) {
  const std::vector<LayerKeeps> layers(64, LayerKeeps{1, 16});
  size_t before = layers.size() + 1;
  for (const int64_t in_flight : {1, 2, 4, 8, 16}) {
    const auto groups = recompute_groups(layers, {.most = in_flight});
    EXPECT_LE(groups.size(), before);
    before = groups.size();
  }
  // (4 - 1) * 16 + 15 + 4 * 16 = 127 is less than with any other number.
  EXPECT_EQ(recompute_groups(layers, {.most = 4}).size(), 16U);
}

TEST(RecomputeGroups, OfLayersThatSaveNothingAreOne) {
  EXPECT_EQ(recompute_groups(std::vector<LayerKeeps>(5), {.most = 1}).size(), 1U);
}

// What a split backward holds between its halves is of all layers, so more inputs would only add to it.
TEST(RecomputeGroups, AreOneWhereBackwardsAreSplit) {
  const std::vector<LayerKeeps> layers(10, LayerKeeps{1, 16});
  EXPECT_GT(recompute_groups(layers, {.most = 2}).size(), 1U);
  EXPECT_EQ(recompute_groups(layers, {.most = 2, .splits = true}).size(), 1U);
}

TEST(RecomputeGroups, AScheduleSaysHowManyMicrobatchesAStageHolds) {
  const auto of = [](const char* name) {
    return held_microbatches(make_schedule({.name = name, .stages = 4, .window = 8}));
  };
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(of("1f1b")[stage].most, 4 - stage);
    EXPECT_EQ(of("1f1b")[stage].repeats(4, 5), stage < 3);
    EXPECT_TRUE(of("1f1b")[stage].repeats(3, 5));
    EXPECT_FALSE(of("1f1b")[stage].splits);
    EXPECT_EQ(of("gpipe")[stage].most, 8);
  }
  EXPECT_TRUE(of("zb-h1")[0].splits);
}

}  // namespace
}  // namespace gyre
