// The warm-up that knows the delay, against its formula, over other optimizers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(DelayDiscount, DividesByThePowerOfTheDelayThatFades) {
  for (const auto& [kind, undiscounted] : std::map<std::string, std::string>{
           {"pipedream-lr", "adamw"}, {"pipemare", "adamw"}, {"basis-rotation", "basis-rotation"}, {"muon", "muon"}}) {
    OptimizerConfig config;
    config.delay_warmup = 100;
    auto slowed = make(kind, matrix("w", 3, 3, true), config), plain = make(undiscounted, matrix("w", 3, 3, true));
    at::manual_seed(1);
    at::Tensor a = at::randn({3, 3}), b = a.clone();
    for (int64_t t = 1; t <= 150; ++t) {
      const at::Tensor g = at::randn({3, 3});
      const int64_t delay = t < 5 ? 0 : 7;
      const double p = std::max(0.0, 1 - static_cast<double>(t) / 100);
      step(*slowed, a, g, context_of(t, 1e-2, delay));
      step(*plain, b, g, context_of(t, 1e-2 / std::pow(static_cast<double>(std::max<int64_t>(1, delay)), p)));
      ASSERT_TRUE(a.equal(b)) << kind << ", update " << t;
    }
  }
}

}  // namespace
}  // namespace gyre
