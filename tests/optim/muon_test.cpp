// Muon: what its steps are.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "fixture.h"

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

}  // namespace
}  // namespace gyre
