// Forecasts of weights: what the loops on the CPU give, the portable paths give too.
#include "gyre/runtime/weight_forecast.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(WeightForecast, LoopsAndTheirPortablePathsAgree) {
  at::manual_seed(71);
  for (const int64_t count : {1, 7, 3000}) {
    for (const double kept : {0.0, 0.6}) {
      const at::Tensor masters = at::randn({count}), previous = at::randn({count}), step = at::randn({count});
      const at::Tensor portable_previous = previous.clone(), portable_step = step.clone();
      observe_step(step, previous, masters, kept);
      portable::observe_step(portable_step, portable_previous, masters, kept);
      EXPECT_TRUE(at::allclose(step, portable_step, 1e-5, 1e-6));
      EXPECT_TRUE(previous.equal(masters));
      EXPECT_TRUE(portable_previous.equal(masters));
    }
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor masters = at::randn({count}), step = at::randn({count});
      const at::Tensor out = at::empty({count}, type), portable_out = at::empty({count}, type);
      write_forecast(masters, step, -3, out);
      portable::write_forecast(masters, step, -3, portable_out);
      EXPECT_TRUE(at::allclose(out, portable_out, type == at::kFloat ? 1e-5 : 1.0 / 128, 1e-6));
    }
  }
}

}  // namespace
}  // namespace gyre
