// The basis of one side: orthogonal, the eigenvectors, an isometry where it is a sketch.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fixture.h"
#include "gyre/optim/parameter/rotation_basis.h"

namespace gyre {
namespace {

using namespace testing_support;

void refresh(RotationBasis& basis) {
  basis.prepare(basis.covariance(), 0, nullptr);
  basis.take(false);
}

TEST(RotationBasis, StaysOrthogonalOverTenThousandRefreshes) {
  at::manual_seed(7);
  RotationBasis basis(6, {}, at::kCPU);
  for (int step = 0; step < 10000; ++step) {
    const at::Tensor g = at::randn({6, 3}) * (step % 100 == 0 ? 1e3 : 1e-3);
    basis.accumulate(g, 0, 0.99);
    refresh(basis);
  }
  EXPECT_LT((basis.vectors().t().mm(basis.vectors()) - at::eye(6)).abs().max().item<double>(), 1e-5);
}

TEST(RotationBasis, FindsTheEigenvectors) {
  at::manual_seed(8);
  const at::Tensor q = random_orthogonal(8);
  RotationBasis basis(8, {}, at::kCPU);
  basis.accumulate(at::eye(8), 0, 0);  // an uninformed start
  refresh(basis);
  basis.accumulate(q * at::pow(2.0, -at::arange(8, at::kFloat) / 2), 0, 0);  // x with x x^T = c
  for (int i = 0; i < 60; ++i) refresh(basis);
  EXPECT_LT((basis.vectors().t().mm(q).abs() - at::eye(8)).abs().max().item<double>(), 1e-3);
}

// Covariances of gradients of 1e-12 and of 1e12 alike.
TEST(RotationBasis, DriftDoesNotDependOnTheGradientsSize) {
  at::manual_seed(9);
  for (const int64_t rank : {0, 3}) {
    RotationBasisOptions options;
    options.rank = rank;
    RotationBasis basis(8, options, at::kCPU);
    basis.accumulate(at::randn({8, 20}), 0, 0);
    refresh(basis);
    const at::Tensor covariance = basis.image(at::randn({8, 20}), 0);
    const double drift = basis.drift(covariance).item<double>();
    EXPECT_GT(drift, 0.1);
    for (const double scale : {1e-24, 1e24}) {
      EXPECT_NEAR(basis.drift(covariance * scale).item<double>(), drift, 1e-5) << scale;
    }
    EXPECT_EQ(basis.drift(covariance * 0).item<double>(), 0);
  }
}

// A gradient that nothing clips may be large, and its covariance is its square.
TEST(RotationBasis, SketchesOfHugeGradientsAreThoseOfOrdinaryOnes) {
  at::manual_seed(10);
  RotationBasisOptions options;
  options.rank = 3;
  RotationBasis ordinary(8, options, at::kCPU), huge(8, options, at::kCPU);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::randn({8, 20});
    ordinary.accumulate(x, 0, 0.5);
    huge.accumulate(x * 1e14, 0, 0.5);
    refresh(ordinary);
    refresh(huge);
  }
  EXPECT_TRUE(at::allclose(huge.vectors(), ordinary.vectors(), 1e-3, 1e-4));
}

// On a device nobody reads whether the next basis is wanted: it is made, and chosen there.
TEST(RotationBasis, WhatIsNotWantedIsLeft) {
  at::manual_seed(3);
  for (const bool keeps_covariance : {true, false}) {
    for (const int64_t rank : {0, 3}) {
      RotationBasisOptions options;
      options.rank = rank;
      options.keeps_covariance = keeps_covariance;
      RotationBasis chosen(8, options, at::kCPU), plain(8, options, at::kCPU);
      const auto refresh = [](RotationBasis& basis, const at::Tensor& x, const at::Tensor& wanted) {
        basis.prepare(basis.image(x, 0), 0.5, nullptr, wanted);
        return basis.take(false);
      };
      const at::Tensor x = at::randn({8, 20}), y = at::randn({8, 20}), no = at::zeros({}, at::kBool);
      EXPECT_TRUE(refresh(chosen, x, no).cold) << "the first is always wanted";
      refresh(plain, x, {});
      const at::Tensor before = chosen.vectors().clone();
      const RotationBasis::Change change = refresh(chosen, y, no);
      EXPECT_TRUE(chosen.vectors().equal(before));
      EXPECT_TRUE(change.order.equal(at::arange(change.order.size(0))));
      const at::Tensor v = at::rand({chosen.coordinates(), 5});
      EXPECT_TRUE(chosen.carry_variances(v, 0, change).equal(v));
      refresh(chosen, y, at::ones({}, at::kBool));
      refresh(plain, y, {});
      EXPECT_TRUE(chosen.vectors().equal(plain.vectors()));
      EXPECT_FALSE(chosen.vectors().equal(before));
    }
  }
}

TEST(RotationBasis, LongSidesBeginByIteration) {
  at::manual_seed(15);
  RotationBasisOptions options;
  options.largest_decomposition = 4;
  RotationBasis basis(12, options, at::kCPU);
  const at::Tensor q = random_orthogonal(12);
  basis.accumulate(q * at::logspace(0, -4, 12, 10, at::kFloat), 0, 0);
  refresh(basis);
  EXPECT_TRUE(basis.ready());
  EXPECT_LT((basis.vectors().t().mm(basis.vectors()) - at::eye(12)).abs().max().item<double>(), 1e-5);
  const at::Tensor overlap = basis.vectors().t().mm(q).abs().diagonal();
  EXPECT_GT(overlap.narrow(0, 0, 4).min().item<double>(), 0.99) << overlap;
}

// Where LAPACK's own decomposition fails in fp32.
TEST(RotationBasis, SlowSidesOfThreeThousand) {
  at::manual_seed(16);
  RotationBasis basis(3072, {}, at::kCPU);
  basis.accumulate(at::randn({3072, 64}), 0, 0);
  refresh(basis);
  refresh(basis);
  EXPECT_LT((basis.vectors().t().mm(basis.vectors()) - at::eye(3072)).abs().max().item<double>(), 1e-5);
}

TEST(RotationBasis, ASketchIsAnIsometryThatHoldsTheLargestDirections) {
  at::manual_seed(11);
  RotationBasisOptions options;
  options.rank = 3;
  RotationBasis basis(10, options, at::kCPU);
  const at::Tensor x = at::randn({10, 4});
  const auto expect_isometry = [&](const char* when) {
    const at::Tensor y = basis.rotate(x, 0);
    EXPECT_TRUE(basis.rotate(x.t().contiguous(), 1).allclose(y.t(), 1e-5, 1e-6)) << when;
    EXPECT_EQ(y.size(0), 13) << when;
    EXPECT_LT((basis.rotate_back(y, 0) - x).abs().max().item<double>(), 1e-5) << when;
    EXPECT_NEAR(y.norm().item<double>(), x.norm().item<double>(), 1e-4) << when;
  };
  expect_isometry("before the first basis");
  const at::Tensor strong = random_orthogonal(10).narrow(1, 0, 3);
  const at::Tensor scales = at::tensor({30.0f, 20.0f, 10.0f});
  for (int step = 0; step < 30; ++step) {
    const at::Tensor g = (strong * scales).mm(at::randn({3, 8})) + at::randn({10, 8}) * 0.1;
    basis.accumulate(g, 0, 0.9);
    refresh(basis);
  }
  expect_isometry("later");
  EXPECT_GT(strong.t().mm(basis.vectors()).norm().item<double>(), std::sqrt(3) * 0.999);
}

// Turned along its other side first, a matrix has the same covariance.
TEST(RotationBasis, ASketchTakesInWhatItTurns) {
  at::manual_seed(12);
  RotationBasisOptions options;
  options.rank = 3;
  RotationBasis apart(10, options, at::kCPU), together(10, options, at::kCPU);
  const at::Tensor x = at::randn({10, 6}), y = at::randn({10, 6}), turn = random_orthogonal(6);
  for (RotationBasis* basis : {&apart, &together}) {
    EXPECT_FALSE(basis->accumulates_as_it_rotates()) << "it is not ready";
    basis->accumulate(x, 0, 0.5);
    refresh(*basis);
    EXPECT_TRUE(basis->accumulates_as_it_rotates());
  }
  const at::Tensor before = apart.covariance().clone();
  for (const int64_t side : {0, 1}) {
    apart.accumulate(y, 0, 0.5);
    const at::Tensor turned = y.mm(turn), of_side = side == 0 ? turned : turned.t().contiguous();
    EXPECT_TRUE(together.rotate_and_accumulate(of_side, side, 0.5).equal(together.rotate(of_side, side)));
    EXPECT_TRUE(together.covariance().allclose(apart.covariance(), 1e-4, 1e-5)) << side;
    EXPECT_FALSE(together.covariance().allclose(before, 1e-2, 1e-2));
  }
}

}  // namespace
}  // namespace gyre
