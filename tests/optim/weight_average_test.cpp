// The average of weights against its definition, on the CPU's loop and the portable path.
#include "gyre/optim/weight_average.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fixture.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

using namespace testing_support;

const std::vector<ParameterSpec> kSpecs = {matrix("w", 19, 5, false), matrix("b", 1, 37, false)};

std::vector<at::Tensor> draw() {
  return {at::randn({19, 5}), at::randn({1, 37})};
}

WeightAverage::Weights of(std::vector<at::Tensor> tensors) {
  return [tensors = std::move(tensors)](size_t i) { return tensors[i]; };
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(WeightAverage, IsTheMeanOfAllVersionsWithFallingWeights) {
  at::manual_seed(1);
  for (const double decay : {0.0, 0.5, 0.99, 0.9999999}) {
    WeightAverage average(kSpecs, decay, at::kCPU);
    std::vector<std::vector<at::Tensor>> versions = {draw()};
    average.restart(of(versions.front()));
    for (int64_t version = 1; version <= 30; ++version) {
      versions.push_back(draw());
      average.take_in(of(versions.back()), version);
      for (size_t i = 0; i < kSpecs.size(); ++i) {
        at::Tensor sum = at::zeros_like(versions[0][i], at::kDouble);
        double weights = 0;
        for (int64_t j = 0; j <= version; ++j) {
          const double weight = std::pow(decay, static_cast<double>(version - j));
          sum += weight * versions[static_cast<size_t>(j)][i].to(at::kDouble);
          weights += weight;
        }
        EXPECT_LT(distance(average.values().tensors[i], sum / weights), 2e-6) << decay << ", version " << version;
      }
    }
  }
}

TEST(WeightAverage, BegunInTheMiddleOfARunBeginsWithTheWeightsThatItFinds) {
  at::manual_seed(2);
  WeightAverage average(kSpecs, 0.9, at::kCPU);
  const auto found = draw(), next = draw();
  average.restart(of(found), {{"w", at::zeros({19, 5})}});
  average.take_in(of(next), 1000);
  EXPECT_LT(distance(average.values().tensors[0], 0.9 * found[0] + 0.1 * next[0]), 1e-6);
}

TEST(WeightAverage, ContinuesFromItsState) {
  at::manual_seed(3);
  WeightAverage whole(kSpecs, 0.9, at::kCPU), second(kSpecs, 0.9, at::kCPU);
  whole.restart(of(draw()));
  whole.take_in(of(draw()), 1);
  second.restart(of(draw()), whole.state());
  const auto next = draw();
  whole.take_in(of(next), 2);
  second.take_in(of(next), 2);
  for (const auto& [name, value] : whole.state()) EXPECT_TRUE(at::equal(value, second.state().at(name))) << name;
  EXPECT_EQ(whole.state().count("w/ema"), 1U);
  NamedTensors half = whole.state();
  half.erase("b/ema");
  EXPECT_THROW(second.restart(of(next), half), InputError) << "some are there, one is not";
  half["b/ema"] = at::zeros({37});
  EXPECT_THROW(second.restart(of(next), half), InputError) << "of another shape";
}

TEST(WeightAverage, FastAndPortablePathsAgree) {
  at::manual_seed(4);
  const at::Tensor average = at::randn({1003}), weight = at::randn({1003}), other = average.clone();
  move_average(average, weight, 0.03);
  portable::move_average(other, weight, 0.03);
  EXPECT_LT(distance(average, other), 1e-6);
  // What is not in order takes the other path.
  const at::Tensor across = at::randn({7, 5}).t(), to = at::zeros({5, 7});
  move_average(to, across, 1);
  EXPECT_TRUE(at::equal(to, across));
}

}  // namespace
}  // namespace gyre
