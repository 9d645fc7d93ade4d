// Nesterov's momentum for asynchronous pipelines against its formula.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(NesterovAsync, FollowsItsFormula) {
  OptimizerConfig config;
  config.beta1 = 0.99;
  config.weight_decay = 0.1;
  auto optimizer = make("nesterov-async", matrix("w", 5, 3, true), config);
  at::manual_seed(1);
  at::Tensor w = at::randn({5, 3}), x = w.to(at::kDouble);
  at::Tensor m = at::zeros({5, 3}, at::kDouble), v = m.clone();
  double product = 1;
  const auto mu = [](int64_t t) { return 0.99 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(t))); };
  for (int64_t t = 1; t <= 50; ++t) {
    const at::Tensor g = at::randn({5, 3});
    const at::Tensor wide = g.to(at::kDouble);
    step(*optimizer, w, g, context_of(t, 1e-2));
    m = 0.99 * m + 0.01 * wide;
    v = 0.999 * v + 0.001 * wide * wide;
    product *= mu(t);
    const at::Tensor direction = ((1 - mu(t)) / (1 - product) * wide + mu(t + 1) / (1 - product * mu(t + 1)) * m) /
                                 ((v / (1 - std::pow(0.999, static_cast<double>(t)))).sqrt() + 1e-8);
    x = x * (1 - 1e-2 * 0.1) - 1e-2 * direction;
  }
  EXPECT_TRUE(at::allclose(w.to(at::kDouble), x, 1e-4, 1e-5));
}

}  // namespace
}  // namespace gyre
