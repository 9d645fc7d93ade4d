// Profiles for the planner: a layer is given what training gives it.
#include "gyre/inspect/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gyre/model/settings/llama_settings.h"
#include "gyre/optim/config.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
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

// With two queries to a key and an MLP as wide as all queries, both layers of a block have matrices of the same shapes.
TEST(Profile, ALlamasMlpIsMeasuredWhereItsMatricesHaveTheAttentionsShapes) {
  const auto mlp_bytes = [](int64_t mlp_width) {
    Config config = small("llama");
    config.model.activation = "silu";
    config.model.bias = false;
    config.model.own.get<LlamaSettings>().key_value_heads = 1;
    config.model.mlp_width = mlp_width;
    return profile_layers(config)[2].activation_bytes;
  };
  EXPECT_EQ(mlp_bytes(8) - mlp_bytes(7), mlp_bytes(9) - mlp_bytes(8));
}

// Counts its updates. One in 200 takes long.
class Sleeper final : public Optimizer {
 public:
  static inline int64_t updates = 0;
  void step(std::span<const at::Tensor>, std::span<const at::Tensor>, const UpdateContext& context) override {
    ++updates;
    if (context.update == 200) std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  NamedTensors state() const override { return {}; }
  void load_state(const NamedTensors&) override {}
};

TEST(Profile, AFewUpdatesStandForAPeriod) {
  optimizer_kinds().add({.name = "sleeper", .meaning = "sleeps", .period = [](const OptionTable&) {
                           return std::vector<AlikeUpdates>{{1, 199}, {200, 1}};
                         }});
  optimizer_makers().add({"sleeper",
                          [](const OptimizerConfig&, const std::vector<ParameterSpec>&,
                             at::Device) -> std::unique_ptr<Optimizer> { return std::make_unique<Sleeper>(); },
                          [](const OptimizerConfig&, const ParameterSpec&) { return 0.0; }});
  Config config = small("gpt");
  config.optimizer.kind = "sleeper";
  for (const LayerProfile& layer : profile_layers(config)) {
    EXPECT_GE(layer.update, 40e-3 / 200) << layer.name;
    EXPECT_LT(layer.update, 40e-3 / 20) << layer.name;
  }
  EXPECT_LT(Sleeper::updates, 100) << "of four layers";
}

TEST(Profile, ALongPeriodTakesNoLongerThanAShortOne) {
  Config config = small("gpt");
  config.optimizer.kind = "basis-rotation";
  auto& own = config.optimizer.own.get<BasisRotationSettings>();
  own.interval = int64_t{1} << 62;
  own.covariance_every = own.refresh_lag = int64_t{1} << 61;
  for (const LayerProfile& layer : profile_layers(config)) EXPECT_GT(layer.update, 0) << layer.name;
}

// A run copies the weights of norms only where the backward may be given newer ones.
TEST(Profile, NormsKeepWhatARunKeeps) {
  const auto bytes_with = [](const char* weights) {
    Config config = small("gpt");
    config.pipeline.weights = weights;
    return profile_layers(config)[1].activation_bytes;
  };
  EXPECT_LT(bytes_with("stash"), bytes_with("latest"));
  EXPECT_EQ(bytes_with("auto"), bytes_with("stash"));
}

}  // namespace
}  // namespace gyre
