// What an optimizer is predicted to keep is what it keeps.
#include "gyre/optim/state_bytes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gyre/model/gpt.h"
#include "gyre/model/stage.h"
#include "gyre/optim/settings/basis_rotation_settings.h"

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
      // A sketch also holds the directions that it begins with, which it does not save.
      EXPECT_LE(predicted, kind == "basis-rotation" ? 1.15 * kept : kept + 64) << kind;
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
            EXPECT_LE(predicted, 1.2 * kept) << source << geometry << long_sides << max_dimension << sketch;
            EXPECT_GE(predicted, 0.97 * kept) << source << geometry << long_sides << max_dimension << sketch;
          }
        }
      }
    }
  }
}

TEST(StateBytes, OfMatricesThatNobodyCanHold) {
  ParameterSpec spec;
  spec.shape = {int64_t{1} << 40, int64_t{1} << 40};
  spec.rotate = true;
  EXPECT_GT(optimizer_state_bytes({}, {spec}), 0x1p82);
}

}  // namespace
}  // namespace gyre
