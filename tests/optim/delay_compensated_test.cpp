// Delay compensation against its formula.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "fixture.h"
#include "gyre/optim/settings/delay_compensated_settings.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(DelayCompensated, AddsTheCurvatureTerm) {
  OptimizerConfig config;
  config.own.edit<DelayCompensatedSettings>().lambda = 0.5;
  auto compensated = make("delay-compensated", matrix("w", 4, 2, true), config),
       plain = make("adamw", matrix("w", 4, 2, true));
  at::manual_seed(1);
  at::Tensor a = at::randn({4, 2}), b = a.clone();
  std::vector<at::Tensor> history = {a.clone()};  // weights before update t
  for (int64_t t = 1; t <= 40; ++t) {
    const at::Tensor g = at::randn({4, 2});
    const int64_t delay = std::min<int64_t>(t - 1, 3);
    step(*compensated, a, g, context_of(t, 1e-2, delay));
    const at::Tensor then = history[static_cast<size_t>(t - 1 - delay)];
    step(*plain, b, g + 0.5 * g * g * (b - then), context_of(t, 1e-2));
    history.push_back(b.clone());
    ASSERT_TRUE(at::allclose(a, b, 1e-6, 1e-7)) << t;
  }
}

// Devices do it in passes, as it is done here of a weight whose rows are not adjacent.
TEST(DelayCompensated, InPassesIsAsInOne) {
  OptimizerConfig config;
  config.own.edit<DelayCompensatedSettings>().lambda = 0.5;
  auto loops = make("delay-compensated", matrix("w", 9, 7, true), config);
  auto passes = make("delay-compensated", matrix("w", 9, 7, true), config);
  at::manual_seed(4);
  at::Tensor a = at::randn({9, 7}), b = a.t().contiguous().t();
  for (int64_t t = 1; t <= 12; ++t) {
    const at::Tensor g = at::randn({9, 7});
    const UpdateContext context = context_of(t, 0.1, std::min<int64_t>(t - 1, 3));
    step(*loops, a, g, context);
    step(*passes, b, g, context);
    ASSERT_FALSE(b.is_contiguous());
    ASSERT_TRUE(at::allclose(a, b, 1e-5, 1e-6)) << "update " << t;
  }
}

// A delay counts versions, and an update that is left out makes one: like the one before.
TEST(DelayCompensated, CountsUpdatesThatWereLeftOut) {
  OptimizerConfig config;
  config.own.edit<DelayCompensatedSettings>().lambda = 0.5;
  auto compensated = make("delay-compensated", matrix("w", 4, 2, true), config),
       plain = make("adamw", matrix("w", 4, 2, true));
  at::manual_seed(1);
  at::Tensor a = at::randn({4, 2}), b = a.clone();
  std::vector<at::Tensor> history = {a.clone()};
  for (int64_t t = 1; t <= 12; ++t) {
    const at::Tensor g = at::randn({4, 2}), then = history[static_cast<size_t>(t - 1 - std::min<int64_t>(t - 1, 3))];
    const UpdateContext context = context_of(t, 1e-2, std::min<int64_t>(t - 1, 3));
    if (t == 5 || t == 6) {
      compensated->skip({&a, 1}, context);
    } else {
      step(*compensated, a, g.clone(), context);
      step(*plain, b, g + 0.5 * g * g * (b - then), context_of(t, 1e-2));
    }
    history.push_back(b.clone());
    ASSERT_TRUE(at::allclose(a, b, 1e-6, 1e-7)) << t;
  }
}

}  // namespace
}  // namespace gyre
