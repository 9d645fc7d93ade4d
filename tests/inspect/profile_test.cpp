// Profiles for the planner: a layer is given what training gives it.
#include "gyre/inspect/profile.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/made_up_device.h"

namespace gyre {
namespace {

Config small(const std::string& kind) {
  Config config;
  config.model.kind = kind;
  config.model.layers = 1;
  config.model.width = 8;
  config.model.heads = 2;
  config.model.context = 16;
  config.model.vocabulary = 40;
  config.run.precision = "fp32";
  return config;
}

TEST(Profile, OnADeviceLayersHaveTheSameBytes) {
  testing_support::made_up::World::only().take_faults();
  Config config = small("gpt");
  config.model.tie = true;
  config.optimizer.kind = "basis-rotation";
  const auto cpu = profile_layers(config);
  config.pipeline.device = "privateuseone";
  const auto made_up = profile_layers(config);
  EXPECT_TRUE(testing_support::made_up::World::only().take_faults().empty());
  ASSERT_EQ(made_up.size(), cpu.size());
  for (size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(cpu[i].name);
    EXPECT_GT(made_up[i].forward, 0);
    EXPECT_GT(made_up[i].update, 0);
    EXPECT_EQ(made_up[i].activation_bytes, cpu[i].activation_bytes);
    EXPECT_EQ(made_up[i].output_bytes, cpu[i].output_bytes);
    EXPECT_EQ(made_up[i].optimizer_bytes, cpu[i].optimizer_bytes);
  }
}

TEST(Profile, ABertsHeadScoresTheMaskedPositionsAlone) {
  Config config = small("bert");
  config.model.context = 63;  // 60 tokens of text, 9 of them masked
  config.model.vocabulary = 5003;
  config.pipeline.microbatch = 4;
  config.optimizer.kind = "adamw";
  const std::vector<LayerProfile> profiles = profile_layers(config);
  ASSERT_EQ(profiles.size(), 4u);
  // Logits are nearly all that the head's backward holds; none are kept for it.
  const double logits = 4.0 * 9 * 5003 * 4;
  EXPECT_EQ(static_cast<double>(profiles.back().split_bytes), logits);
  EXPECT_GT(static_cast<double>(profiles.back().passing_bytes), logits);
  EXPECT_LT(static_cast<double>(profiles.back().passing_bytes), 1.5 * logits);
  EXPECT_LT(static_cast<double>(profiles.back().activation_bytes), 0.1 * logits);
  EXPECT_EQ(profiles.front().input_bytes, 4 * 63 * 8);
}

}  // namespace
}  // namespace gyre
