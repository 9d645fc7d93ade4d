// Stages are balanced by the cost of passes and updates, and a block may be cut between attention and MLP.
#include "gyre/build/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/build/build.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

Config config_of(const std::string& optimizer, int64_t accumulate) {
  Config config;
  config.model.layers = 8;
  config.model.width = 384;
  config.model.heads = 6;
  config.model.context = 256;
  config.model.vocabulary = 8192;
  config.pipeline.stages = 2;
  config.pipeline.microbatch = 4;
  config.pipeline.accumulate = accumulate;
  config.optimizer.kind = optimizer;
  return config;
}

// Layers of the first of two stages: the embedding and two for each block.
int first_stage(const Config& config) {
  return build_partition(config, build_schedule(config), build_layers(config)).front().end;
}

TEST(Balance, FewTokensAnUpdateMoveWorkAwayFromWhatIsRotated) {
  EXPECT_EQ(first_stage(config_of("adamw", 1)), 11) << "five blocks, for the head costs as much as two";
  EXPECT_EQ(first_stage(config_of("adamw", 64)), 11);
  EXPECT_EQ(first_stage(config_of("basis-rotation", 1)), 10) << "four blocks, and the attention of one more";
  EXPECT_EQ(first_stage(config_of("basis-rotation", 4)), 10);
  EXPECT_EQ(first_stage(config_of("basis-rotation", 64)), 11) << "updates cost little here";
}

TEST(Balance, WhatMustNotChangeBitsDoesNotMoveACut) {
  for (const int64_t accumulate : {1, 4, 16, 64}) {
    Config config = config_of("basis-rotation", accumulate);
    const int cut = first_stage(config);
    config.pipeline.recompute = true;
    EXPECT_EQ(first_stage(config), cut);
    config.pipeline.replicas = 64;
    EXPECT_EQ(first_stage(config), cut);
    config.pipeline.shard_optimizer = false;
    EXPECT_EQ(first_stage(config), cut);
    config.pipeline.executor = "replay";
    EXPECT_EQ(first_stage(config), cut);
  }
}

TEST(Balance, APassIsThreeForwards) {
  const Config config = config_of("adamw", 1);
  const OptimizerConfig adamw = optimizer_config(config);
  for (const auto& layer : build_layers(config)) {
    EXPECT_DOUBLE_EQ(layer_cost(*layer, adamw, {.tokens = 1024, .microbatches = 5}), 15 * layer->cost(1024));
  }
}

TEST(Balance, AsManyStagesAsLayers) {
  Config config = config_of("adamw", 1);
  config.model.layers = 3;
  config.pipeline.stages = 8;
  const Layers layers = build_layers(config);
  ASSERT_EQ(layers.size(), 8u);
  EXPECT_EQ(layers[5]->name(), "blocks.2.attention");
  EXPECT_EQ(layers[6]->name(), "blocks.2.mlp");
  EXPECT_EQ(build_partition(config, build_schedule(config), layers).size(), 8u);
  config.pipeline.stages = 9;
  try {
    build_partition(config, build_schedule(config), layers);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("use at most 8 stages"));
  }
}

}  // namespace
}  // namespace gyre
