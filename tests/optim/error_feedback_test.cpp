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

// The bits of AdamW's step followed by passes.
TEST(ErrorFeedback, IsAdamWAndThenTheChangeOfItsStep) {
  for (const bool bf16_moments : {false, true}) {
    for (const int64_t count : {1, 7, 1000}) {
      OptimizerConfig config;
      config.bf16_moments = bf16_moments;
      auto corrected = make("error-feedback", matrix("w", count, 3, true), config);
      auto plain = make("adamw", matrix("w", count, 3, true), config);
      at::manual_seed(2);
      const at::Tensor w = at::randn({count, 3}), expected = w.clone(), last = at::zeros({count, 3});
      for (int64_t t = 1; t <= 12; ++t) {
        const at::Tensor g = at::randn({count, 3});
        UpdateContext context = context_of(t, t == 3 ? 0 : 1e-2, t % 4);
        context.gradient_factor = 0.3;
        const at::Tensor before = expected.clone();
        step(*plain, expected, g, context);
        const at::Tensor change = before - expected;
        if (context.delay > 0 && last.any().item<bool>()) expected.sub_(change - last);
        last.copy_(change);
        step(*corrected, w, g, context);
        ASSERT_TRUE(w.equal(expected)) << count << ", update " << t;
      }
      EXPECT_TRUE(corrected->state().at("w/last_step").equal(last));
    }
  }
}

}  // namespace
}  // namespace gyre
