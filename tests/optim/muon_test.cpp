// Muon: what its steps are, and that they follow its formula.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "fixture.h"
#include "gyre/optim/settings/muon_settings.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Muon, StepsAreNearlyOrthogonal) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{12, 12}, {24, 8}, {8, 24}}) {
    OptimizerConfig config;
    config.weight_decay = 0;
    auto optimizer = make("muon", matrix("w", rows, columns, true), config);
    at::manual_seed(1);
    at::Tensor w = at::zeros({rows, columns});
    step(*optimizer, w, at::randn({rows, columns}), context_of(1, 1e-3));
    const double scale = 0.02 * std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    const at::Tensor singular = std::get<1>(at::linalg_svd(w / scale, false));
    EXPECT_GT(singular.min().item<double>(), 0.3);  // five steps of these coefficients end between 0.7 and 1.2 or so
    EXPECT_LT(singular.max().item<double>(), 1.3);
  }
}

TEST(Muon, FollowsItsFormula) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{6, 6}, {12, 4}, {4, 12}}) {
    OptimizerConfig config;
    config.weight_decay = 0.1;
    auto optimizer = make("muon", matrix("w", rows, columns, true), config);
    at::manual_seed(1);
    const at::Tensor w = at::randn({rows, columns}), start = w.to(at::kDouble);
    at::Tensor expected = start.clone(), momentum = at::zeros_like(start);
    constexpr double kRate = 20 * 1e-3;
    for (int64_t t = 1; t <= 30; ++t) {
      const at::Tensor g = at::randn({rows, columns});
      step(*optimizer, w, g, context_of(t, 1e-3));
      const at::Tensor wide = g.to(at::kDouble);
      momentum = 0.95 * momentum + 0.05 * wide;
      at::Tensor x = 0.05 * wide + 0.95 * momentum;
      if (rows > columns) x = x.t();
      x = x / (x.norm() + 1e-7);
      for (int i = 0; i < 5; ++i) {
        const at::Tensor a = x.mm(x.t());
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a.mm(a)).mm(x);
      }
      if (rows > columns) x = x.t();
      const double scale = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
      expected = (1 - kRate * 0.1) * expected - kRate * scale * x;
    }
    EXPECT_LT(((w - expected).norm() / (expected - start).norm()).item<double>(), 1e-5) << rows << " x " << columns;
  }
}

// The factors of large matrices' products are rounded to bf16, and only theirs.
TEST(Muon, RoundsFactorsOfLargeMatrices) {
  const auto stepped = [](int64_t rows, int64_t columns, const char* products) {
    OptimizerConfig config;
    config.own.edit<MuonSettings>().products = products;
    auto optimizer = make("muon", matrix("w", rows, columns, true), config);
    at::manual_seed(1);
    at::Tensor w = at::zeros({rows, columns});
    for (int64_t t = 1; t <= 3; ++t) step(*optimizer, w, at::randn({rows, columns}), context_of(t, 1e-3));
    return w;
  };
  EXPECT_TRUE(stepped(64, 256, "bf16").equal(stepped(64, 256, "fp32")));
  const at::Tensor exact = stepped(200, 256, "fp32");
  const double difference = ((stepped(200, 256, "bf16") - exact).norm() / exact.norm()).item<double>();
  EXPECT_GT(difference, 1e-4);
  EXPECT_LT(difference, 3e-2);
}

}  // namespace
}  // namespace gyre
