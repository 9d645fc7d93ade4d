// Pipelines that are built from a configuration.
#include "gyre/build/build.h"

#include <gtest/gtest.h>

#include <string>

namespace gyre {
namespace {

Config config_of(const std::string& optimizer) {
  Config config;
  config.model.layers = 3;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.context = 8;
  config.model.vocabulary = 64;
  config.pipeline.stages = 3;
  config.optimizer.kind = optimizer;
  config.optimizer.ema_decay = 0.9;
  return config;
}

TEST(Build, APipelineToBeEvaluatedIsTheSameWithoutWhatUpdatesNeed) {
  for (const std::string& optimizer : optimizer_kinds().names()) {
    SCOPED_TRACE(optimizer);
    const Config config = config_of(optimizer);
    const auto trained = build_pipeline(config), evaluated = build_evaluated_pipeline(config);
    EXPECT_FALSE(trained->optimizer_state().empty());
    EXPECT_TRUE(evaluated->optimizer_state().empty());
    EXPECT_EQ(evaluated->options().weights, trained->options().weights);
    for (int stage = 0; stage < trained->schedule().stages; ++stage) {
      const auto &all = trained->owner(stage).weights.specs(), &same = evaluated->owner(stage).weights.specs();
      ASSERT_EQ(same.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(same[i].name, all[i].name);
    }
    NamedTensors weights = trained->weights();
    for (auto& [name, weight] : weights) weight = weight + 1;
    evaluated->restore(weights, {}, 5);
    for (const auto& [name, weight] : evaluated->weights()) EXPECT_TRUE(weight.equal(weights.at(name))) << name;
  }
}

}  // namespace
}  // namespace gyre
