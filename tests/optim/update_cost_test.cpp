// What an update's products cost, by hand.
#include <gtest/gtest.h>

#include "fixture.h"
#include "gyre/optim/settings/basis_rotation_settings.h"

namespace gyre {
namespace {

using namespace testing_support;

double cost(const OptimizerConfig& config, const ParameterSpec& spec) {
  return optimizer_makers().at(config.kind).update_cost(config, spec);
}

OptimizerConfig rotation(const BasisRotationSettings& settings) {
  OptimizerConfig config;
  config.own = settings;
  return config;
}

constexpr int64_t kSize = 30;
constexpr double kCube = 27000;  // of it

TEST(UpdateCost, OfWholeBases) {
  const ParameterSpec square = matrix("w", kSize, kSize, true);
  // Of a side, in cubes: turned forth and back; half of a covariance; C Q, and 2/3 each for the two halves of QR.
  const double turns = 2, covariance = 0.5, refresh = 1 + 4.0 / 3;
  EXPECT_NEAR(cost(rotation({.interval = 10}), square), 2 * kCube * (1.1 * turns + covariance + 0.1 * refresh), 1e-6);
  EXPECT_NEAR(cost(rotation({.interval = 10, .covariance_every = 5}), square),
              2 * kCube * (1.1 * turns + 0.2 * covariance + 0.1 * refresh), 1e-6);
  EXPECT_NEAR(cost(rotation({.interval = 5, .source = "first"}), square), 2 * kCube * (1.2 * turns + 0.2 * refresh),
              1e-6);
  EXPECT_NEAR(cost(rotation({.geometry = "unilateral"}), square), cost(rotation({}), square) / 2, 1e-6);
}

TEST(UpdateCost, OfASketch) {
  const double of_long = 1.1 * 16 + 4 + 0.1 * 2 * (4 - 1.0 / 3);  // as many directions as the other side has
  const double of_short = 1.1 * 8 + 2 + 0.1 * (1 + 4.0 / 3);
  for (const ParameterSpec& spec : {matrix("w", 4 * kSize, kSize, true), matrix("w", kSize, 4 * kSize, true)}) {
    EXPECT_NEAR(cost(rotation({.interval = 10}), spec), kCube * (of_long + of_short), 1e-6);
    EXPECT_GT(cost(rotation({.interval = 10, .long_sides = "whole"}), spec), 1.5 * kCube * (of_long + of_short));
  }
}

TEST(UpdateCost, OfStackedMatricesAndOfOthers) {
  const ParameterSpec one = matrix("w", kSize, kSize, true);
  const ParameterSpec three = matrix("w", 3 * kSize, kSize, true, {kSize, kSize, kSize});
  for (const char* kind : {"basis-rotation", "muon"}) {
    EXPECT_GT(cost(config_of(kind), one), 0);
    EXPECT_NEAR(cost(config_of(kind), three), 3 * cost(config_of(kind), one), 1e-6) << kind;
    EXPECT_EQ(cost(config_of(kind), matrix("w", kSize, kSize, false)), 0) << kind;
  }
  EXPECT_NEAR(cost(config_of("muon"), matrix("w", 4 * kSize, kSize, true)), 5 * (4 + 1 + 4) * kCube, 1e-6);
  EXPECT_EQ(cost(config_of("adamw"), one), 0) << "no products";
}

}  // namespace
}  // namespace gyre
