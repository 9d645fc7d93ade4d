// The bubble predicted before a run: known formulas for equal stages, drains counted, and no long simulations.
#include "gyre/train/predicted_bubble.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gyre/build/build.h"

namespace gyre {
namespace {

// Eight blocks, whose embedding and head weigh next to nothing.
Config config_of(const std::string& schedule, int stages, int accumulate) {
  return parse_config("[data]\ntokens = \"x\"\n[model]\nlayers = 8\nwidth = 64\nheads = 2\nvocabulary = 2\n", "x",
                      {"optimizer.kind=adamw", "run.updates=200", fmt::format("pipeline.schedule={}", schedule),
                       fmt::format("pipeline.stages={}", stages), fmt::format("pipeline.accumulate={}", accumulate)});
}

std::optional<double> bubble_of(const Config& config) {
  const Schedule schedule = build_schedule(config);
  const Layers layers = build_layers(config);
  return predict_bubble(config, schedule, layers, build_partition(config, schedule, layers));
}

// (p - 1) / (m + p - 1) for p stages and m microbatches in an update (Narayanan et al., 2021, section 2.2).
TEST(PredictedBubble, OfAFlushIsTheFormulas) {
  for (const auto& [stages, accumulate] : {std::pair{4, 1}, {4, 8}, {2, 4}}) {
    const double expected = (stages - 1.0) / (accumulate + stages - 1.0);
    EXPECT_NEAR(bubble_of(config_of("1f1b", stages, accumulate)).value(), expected, 0.01) << stages << accumulate;
  }
}

TEST(PredictedBubble, WithoutAFlushIsThatOfDrains) {
  Config config = config_of("pipedream", 4, 1);
  EXPECT_NEAR(bubble_of(config).value(), 3.0 / 203, 0.005);
  config.run.eval_every = 20;  // the pipeline fills and drains ten times
  EXPECT_NEAR(bubble_of(config).value(), 3.0 / 23, 0.02);
  config.run.eval_every = 0;
  config.run.checkpoint_every = 20;
  EXPECT_NEAR(bubble_of(config).value(), 3.0 / 23, 0.02);
}

TEST(PredictedBubble, DrainsCountWhateverTheyAreFor) {
  Config listed = config_of("pipedream", 4, 1), evaluated = listed;
  evaluated.run.eval_every = 2;
  for (int64_t at = 2; at < 200; at += 2) listed.run.drains.push_back(at);
  EXPECT_DOUBLE_EQ(bubble_of(listed).value(), bubble_of(evaluated).value());
  EXPECT_NEAR(bubble_of(listed).value(), 3.0 / 5, 0.02);
}

// A segment of n updates takes n + 3 of a stage's passes. Unequal segments are as one of their mean length.
TEST(PredictedBubble, OfUnequalSegmentsIsThatOfTheirSum) {
  Config config = config_of("pipedream", 4, 1);
  config.run.eval_every = 30;
  config.run.checkpoint_every = 50;  // 30, 50, 60, 90, 100, 120, 150, 180, 200
  EXPECT_NEAR(bubble_of(config).value(), 3.0 * 9 / (200 + 3 * 9), 0.01);
  config.run.eval_every = config.run.checkpoint_every = 0;
  for (int64_t at = 3; at < 200; at += 3) config.run.drains.insert(config.run.drains.end(), {at - 2, at});
  EXPECT_NEAR(bubble_of(config).value(), 3.0 * 133 / (200 + 3 * 133), 0.02);  // segments of 1, 2, 1, 2, ...
}

TEST(PredictedBubble, StagesThatDifferKeepWorkersWaiting) {
  // Five stages of eight blocks: sixteen sublayers do not divide by five.
  EXPECT_GT(bubble_of(config_of("pipedream", 5, 1)).value(), 0.1);
}

TEST(PredictedBubble, ACommonNormKeepsWindowsApart) {
  Config config = config_of("zb-h1", 5, 8);
  const double apart = bubble_of(config).value();
  config.optimizer.clip_scope = "stage";
  EXPECT_LT(bubble_of(config).value(), 0.99 * apart);
}

TEST(PredictedBubble, OfALongRunIsThatOfItsBeginning) {
  Config config = config_of("pipedream", 4, 1);
  config.run.updates = int64_t{1} << 40;
  EXPECT_LT(bubble_of(config).value(), 0.01);
  config.model.layers = 500;
  config.pipeline.stages = 500;
  const Schedule schedule = build_schedule(config);
  EXPECT_FALSE(predict_bubble(config, schedule, {}, {}).has_value());
}

}  // namespace
}  // namespace gyre
