// What an optimizer is predicted to keep is what it keeps.
#include "gyre/optim/state_bytes.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "gyre/model/gpt.h"
#include "gyre/model/stage.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/tensors/host_memory.h"

namespace gyre {
namespace {

std::vector<ParameterSpec> parameters() {
  ModelSettings model;
  model.layers = 1;
  model.width = 12;
  model.heads = 2;
  model.context = 8;
  model.vocabulary = 40;
  return Stage(build_gpt(model), 0).parameters();
}

double state_bytes(const OptimizerConfig& config) {
  double bytes = 0;
  for (const auto& [name, tensor] : make_optimizer(config, parameters(), at::kCPU)->state()) {
    bytes += static_cast<double>(tensor.nbytes());
  }
  return bytes;
}

TEST(StateBytes, OfEveryOptimizer) {
  for (const std::string& kind : optimizer_kinds().names()) {
    for (const bool bf16_moments : {false, true}) {
      OptimizerConfig config;
      config.kind = kind;
      config.bf16_moments = bf16_moments;
      const double predicted = optimizer_state_bytes(config, parameters()), kept = state_bytes(config);
      EXPECT_LE(predicted, kept + 64) << kind;
      EXPECT_GE(predicted, 0.99 * kept) << kind;
    }
  }
}

TEST(StateBytes, OfEveryWayToRotate) {
  for (const char* source : {"second", "first"}) {
    for (const char* geometry : {"bilateral", "unilateral"}) {
      for (const char* long_sides : {"thin", "whole"}) {
        for (const int64_t max_dimension : {0, 20}) {
          for (const int64_t sketch : {0, 4}) {
            if (sketch > 0 && max_dimension == 0) continue;
            OptimizerConfig config;
            config.own.edit<BasisRotationSettings>().source = source;
            config.own.edit<BasisRotationSettings>().geometry = geometry;
            config.own.edit<BasisRotationSettings>().long_sides = long_sides;
            config.own.edit<BasisRotationSettings>().max_dimension = max_dimension;
            config.own.edit<BasisRotationSettings>().sketch = sketch;
            config.own.edit<BasisRotationSettings>().look_ahead = 0.5;
            const double predicted = optimizer_state_bytes(config, parameters()), kept = state_bytes(config);
            EXPECT_LE(predicted, kept + 64) << source << geometry << long_sides << max_dimension << sketch;
            EXPECT_GE(predicted, 0.97 * kept) << source << geometry << long_sides << max_dimension << sketch;
          }
        }
      }
    }
  }
}

// Sketches of one shape begin with the same random directions. They are held once, and only until there are bases.
TEST(StateBytes, SketchesHoldWhatTheyBeginWithOnce) {
  constexpr int64_t kLong = 128, kShort = 16, kMatrices = 10;
  constexpr size_t kDirections = kLong * kShort * sizeof(float);
  HostMemory memory(1);
  ParameterSpec spec;
  spec.shape = {kLong, kShort};
  spec.rotate = true;
  std::vector<ParameterSpec> specs;
  std::vector<at::Tensor> weights, gradients;
  for (int64_t i = 0; i < kMatrices; ++i) {
    spec.name = fmt::format("w{}", i);
    specs.push_back(spec);
    weights.push_back(at::zeros({kLong, kShort}));
    gradients.push_back(at::ones({kLong, kShort}));
  }
  OptimizerConfig config;
  auto& rotation = config.own.edit<BasisRotationSettings>();
  rotation.interval = 3;
  rotation.products = rotation.covariance_products = rotation.iteration_products = "fp32";
  const size_t before = memory.bytes().live;
  const auto optimizer = make_optimizer(config, specs, at::kCPU);
  const auto kept = static_cast<size_t>(optimizer_state_bytes(config, specs));
  constexpr size_t kSmall = 4096;
  EXPECT_NEAR(memory.bytes().live - before, kept, kSmall) << "none before the first update";
  UpdateContext context;
  for (context.update = 1; context.update <= 3; ++context.update) {
    EXPECT_NEAR(memory.bytes().live - before, kept + (context.update > 1 ? kDirections : 0), kSmall) << context.update;
    optimizer->step(weights, gradients, context);
  }
  EXPECT_NEAR(memory.bytes().live - before, kept, kSmall) << "none once there are bases";
}

TEST(StateBytes, OfMatricesThatNobodyCanHold) {
  ParameterSpec spec;
  spec.shape = {int64_t{1} << 40, int64_t{1} << 40};
  spec.rotate = true;
  EXPECT_GT(optimizer_state_bytes({}, {spec}), 0x1p82);
}

}  // namespace
}  // namespace gyre
