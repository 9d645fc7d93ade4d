// Error feedback against its formula.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(ErrorFeedback, AddsTheChangeOfTheWholeStep) {
  OptimizerConfig config;
  config.beta1 = config.beta2 = 0;  // the direction is the gradient's sign
  config.weight_decay = 0.1;
  auto optimizer = make("error-feedback", matrix("w", 1, 1, true), config);
  at::Tensor w = at::ones({1, 1});
  double x = 1, last = 0;
  const double rates[] = {0.5, 0.25, 0.5, 0.125, 0.5}, signs[] = {1, -1, -1, 1, -1};
  const int64_t delays[] = {1, 1, 2, 0, 1};
  for (int t = 0; t < 5; ++t) {
    step(*optimizer, w, at::full({1, 1}, signs[t]), context_of(t + 1, rates[t], delays[t]));
    const double u = rates[t] * signs[t] + rates[t] * 0.1 * x;
    x -= t == 0 || delays[t] == 0 ? u : u + (u - last);
    last = u;
    EXPECT_NEAR(w.item<double>(), x, 1e-6) << "update " << t + 1;
  }
}

TEST(ErrorFeedback, WithoutDelayIsAdamW) {
  auto corrected = make("error-feedback", matrix("w", 5, 3, true)), plain = make("adamw", matrix("w", 5, 3, true));
  at::manual_seed(1);
  at::Tensor a = at::randn({5, 3}), b = a.clone();
  for (int64_t t = 1; t <= 30; ++t) {
    const at::Tensor g = at::randn({5, 3});
    step(*corrected, a, g, context_of(t, 1e-2));
    step(*plain, b, g, context_of(t, 1e-2));
    ASSERT_TRUE(a.equal(b)) << "update " << t;
  }
}

}  // namespace
}  // namespace gyre
