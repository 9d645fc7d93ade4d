// Stacked matrices are treated as each is alone; orthonormal columns come out of both decompositions alike.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fixture.h"
#include "gyre/optim/parameter/basis_rotation.h"
#include "gyre/optim/parameter/orthonormal.h"
#include "gyre/optim/state_bytes.h"

namespace gyre {
namespace {

using namespace testing_support;

constexpr int64_t kRows = 12, kColumns = 5;
const std::vector<std::string> kNames = {"a", "b[0]", "b[1]"};

struct Variant {
  std::string name;
  RotationConfig config;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, const auto& change) {
    RotationConfig config;
    config.interval = 3;
    config.weight_decay = 0.1;
    change(config);
    all.push_back({name, config});
  };
  add("thin", [](RotationConfig&) {});
  add("whole", [](RotationConfig& c) { c.long_sides = "whole"; });
  add("unilateral", [](RotationConfig& c) { c.geometry = "unilateral"; });
  add("first, unilateral", [](RotationConfig& c) { c.source = "first", c.geometry = "unilateral"; });
  add("first, thin", [](RotationConfig& c) { c.source = "first"; });
  add("adaptive", [](RotationConfig& c) { c.refresh = "adaptive", c.drift = 0.4; });
  add("late", [](RotationConfig& c) { c.refresh_lag = 2; });
  add("carried", [](RotationConfig& c) { c.transport = true, c.covariance_every = 2; });
  add("ahead", [](RotationConfig& c) { c.look_ahead = 0.5; });
  add("bf16 moments", [](RotationConfig& c) { c.bf16_moments = true; });
  return all;
}

// Three matrices, as a stack or each alone, on the CPU.
class Stacks {
 public:
  Stacks(const RotationConfig& config, bool stacked) : config_(config) {
    at::manual_seed(1);
    for (size_t i = 0; i < kNames.size(); ++i) weights_.push_back(at::randn({kRows, kColumns}));
    if (stacked) matrices_.emplace_back(config, kNames, kRows, kColumns, true, at::kCPU);
    for (size_t i = 0; !stacked && i < kNames.size(); ++i) {
      matrices_.emplace_back(config, std::vector<std::string>{kNames[i]}, kRows, kColumns, true, at::kCPU);
    }
  }
  // Gradients of very different sizes, which drift.
  void step(int64_t update) {
    at::manual_seed(static_cast<uint64_t>(100 + update));
    std::vector<at::Tensor> gradients;
    for (size_t i = 0; i < kNames.size(); ++i) {
      const at::Tensor scales = at::logspace(0, -3.0 + static_cast<double>(update % 4), kColumns);
      gradients.push_back(at::randn({kRows, kColumns}) * scales * (i == 1 ? 1e-4 : 1));
    }
    const UpdateContext context = context_of(update, 1e-2, 1);
    if (matrices_.size() == 1) return matrices_[0].step(config_, weights_, gradients, context);
    for (size_t i = 0; i < kNames.size(); ++i) {
      matrices_[i].step(config_, std::vector<at::Tensor>{weights_[i]}, {gradients[i]}, context);
    }
  }
  NamedTensors state() const {
    NamedTensors copy, state;
    for (const RotatedMatrices& matrices : matrices_) matrices.save(state);
    for (const auto& [name, tensor] : state) copy[name] = tensor.clone();
    for (size_t i = 0; i < kNames.size(); ++i) copy[kNames[i]] = weights_[i].clone();
    return copy;
  }
  void load(const NamedTensors& state) {
    for (RotatedMatrices& matrices : matrices_) matrices.load(state);
    for (size_t i = 0; i < kNames.size(); ++i) weights_[i].copy_(state.at(kNames[i]));
  }

 private:
  RotationConfig config_;
  std::vector<at::Tensor> weights_;
  std::vector<RotatedMatrices> matrices_;
};

void expect_alike(const NamedTensors& found, const NamedTensors& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(found.count(name), 1u) << what << ", " << name;
    const at::Tensor other = found.at(name).to(at::kFloat), own = tensor.to(at::kFloat);
    ASSERT_EQ(other.sizes(), own.sizes()) << what << ", " << name;
    const double size = std::max(own.abs().max().item<double>(), 1e-12);
    EXPECT_LE((other - own).abs().max().item<double>() / size, tolerance) << what << ", " << name;
  }
}

TEST(Stacks, AreTreatedAsEachMatrixAlone) {
  for (const auto& [name, config] : variants()) {
    Stacks alone(config, false), stacked(config, true);
    for (int64_t update = 1; update <= 16; ++update) {
      alone.step(update);
      stacked.step(update);
    }
    // bf16 moments are rounded by the bits of gradients, which differ in the last one.
    expect_alike(stacked.state(), alone.state(), config.bf16_moments ? 0.05 : 2e-3, name);
  }
}

TEST(Stacks, AreSavedAndLoaded) {
  for (const auto& [name, config] : variants()) {
    for (const int64_t until : {1, 3, 4, 10}) {
      Stacks first(config, true), again(config, true), alone(config, false);
      for (int64_t update = 1; update <= until; ++update) first.step(update);
      again.load(first.state());
      alone.load(first.state());
      expect_alike(again.state(), first.state(), 0, name);
      expect_alike(alone.state(), first.state(), 0, name);
      for (int64_t update = until + 1; update <= until + 4; ++update) {
        first.step(update);
        again.step(update);
        alone.step(update);
      }
      expect_alike(again.state(), first.state(), 0, name);
      expect_alike(alone.state(), first.state(), config.bf16_moments ? 0.05 : 2e-3, name);
    }
  }
}

// As after a run whose matrices were not stacked, with refresh = "adaptive".
TEST(Stacks, TakeMatricesOfWhichOneAloneHasANextBasis) {
  RotationConfig config;
  config.interval = 3;
  config.refresh_lag = 2;
  config.long_sides = "whole";
  Stacks complete(config, true), partly(config, true);
  for (int64_t update = 1; update <= 6; ++update) complete.step(update);
  NamedTensors state = complete.state();
  for (const char* what : {"basis", "eigenvalues", "order"}) {
    for (const char* side : {"left", "right"}) ASSERT_EQ(state.erase(std::string("a/") + side + "_next_" + what), 1u);
  }
  partly.load(state);
  const NamedTensors before = partly.state();
  partly.step(7);
  partly.step(8);
  complete.step(7);
  complete.step(8);
  const NamedTensors found = partly.state(), expected = complete.state();
  for (const char* side : {"/left_basis", "/right_basis"}) {
    EXPECT_TRUE(found.at(std::string("a") + side).equal(before.at(std::string("a") + side)));
    EXPECT_TRUE(found.at(std::string("b[1]") + side).equal(expected.at(std::string("b[1]") + side)));
    EXPECT_FALSE(found.at(std::string("b[1]") + side).equal(before.at(std::string("b[1]") + side)));
  }
}

// A step on a device has copies of one stack at a time, so it needs no more for more matrices.
TEST(Stacks, AreAsLargeAsTheBytesOfAStepSay) {
  const ParameterSpec square = matrix("w", 768, 768, true), none = matrix("embedding", 50000, 768, false);
  const auto of = [&](const std::vector<ParameterSpec>& specs, int64_t times, at::Device device) {
    return optimizer_step_bytes(config_of("basis-rotation"), specs, {.layers = times, .device = device}).prompt;
  };
  const at::Device device = at::kMeta;
  const double one = of({square}, 1, device);
  EXPECT_GE(one, 768 * 768 * 4);
  EXPECT_EQ(of({square}, 28, device), 28 * one);  // 2^24 elements hold 28
  EXPECT_EQ(of({square}, 29, device), 15 * one);  // two stacks of 14 and 15
  EXPECT_EQ(of({square, none}, 1000, device), 28 * one);
  const ParameterSpec absurd = matrix("w", int64_t{1} << 32, int64_t{1} << 32, true);
  EXPECT_GT(of({absurd}, 1, device), std::ldexp(1.0, 64)) << "a product that fits no integer";
  EXPECT_EQ(of({none}, 1, device), 0);
  EXPECT_EQ(of({square, square}, 28, at::kCPU), of({square}, 1, at::kCPU)) << "one after the other";
  EXPECT_EQ(optimizer_step_bytes(config_of("adamw"), {square}, {.device = device}).prompt, 0);
}

// What refreshes decompose: a covariance of a wide spectrum times a basis that is nearly its own.
at::Tensor moved(int64_t rows, int64_t columns, double smallest) {
  const at::Tensor own = std::get<0>(at::linalg_qr(at::randn({rows, rows}, at::kDouble)));
  const at::Tensor covariance =
      (own * at::logspace(0, smallest, rows, 10, at::TensorOptions(at::kDouble))).matmul(own.t());
  const at::Tensor near = std::get<0>(at::linalg_qr(own + 1e-3 * at::randn({rows, rows}, at::kDouble)));
  return covariance.matmul(near).narrow(1, 0, columns).to(at::kFloat);
}

double off_orthonormal(const at::Tensor& q) {
  const at::Tensor wide = q.to(at::kDouble);
  return (wide.mT().matmul(wide) - at::eye(q.size(-1), at::kDouble)).abs().max().item<double>();
}

TEST(Orthonormal, CholeskysColumnsAreThoseOfReflections) {
  at::manual_seed(2);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{40, 40}, {60, 20}, {7, 1}}) {
    const at::Tensor anchor = random_orthogonal(rows).narrow(1, 0, columns) * 1e-7;
    const at::Tensor matrices =
        at::stack({moved(rows, columns, -3), moved(rows, columns, -9), moved(rows, columns, 0) * 1e-20});
    const Orthonormalised found = by_cholesky(matrices, anchor.expand_as(matrices));
    const Orthonormalised expected = by_reflections(matrices.to(at::kDouble) + anchor);
    EXPECT_LT(off_orthonormal(found.q), 1e-6);
    EXPECT_LT((found.q - expected.q).abs().max().item<double>(), 1e-5) << rows;
    EXPECT_LT(((found.scales - expected.scales) / expected.scales).abs().max().item<double>(), 1e-5) << rows;
  }
}

TEST(Orthonormal, CholeskysColumnsStayOrthonormalWhereAMatrixHasLittle) {
  at::manual_seed(3);
  constexpr int64_t kSize = 64;
  const at::Tensor basis = random_orthogonal(kSize), x = at::randn({kSize, 1});
  at::Tensor with_empty_rows = moved(kSize, kSize, -6);
  with_empty_rows.narrow(0, 5, 20).zero_();
  const at::Tensor matrices = at::stack({at::zeros({kSize, kSize}), x.mm(x.t()).mm(basis) / x.square().sum(),
                                         at::ones({kSize, kSize}) / kSize, with_empty_rows});
  const Orthonormalised found = by_cholesky(matrices, basis.expand_as(matrices) * 1e-7);
  EXPECT_LT(off_orthonormal(found.q), 1e-6);
  EXPECT_LT((found.q[0] - basis).abs().max().item<double>(), 1e-6) << "what is nothing keeps the basis";
}

TEST(Orthonormal, AMatrixThatFailsKeepsItsAnchorAndLeavesTheOthersAlone) {
  at::manual_seed(4);
  const at::Tensor anchor = random_orthogonal(16) * 1e-7, sound = moved(16, 16, -2);
  at::Tensor broken = sound.clone();
  broken[3][4] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor matrices = at::stack({sound, broken, sound});
  const Orthonormalised found = by_cholesky(matrices, anchor.expand_as(matrices)), alone = by_cholesky(sound, anchor);
  EXPECT_LT((found.q[1] - anchor * 1e7).abs().max().item<double>(), 1e-5);
  for (const int64_t i : {0, 2}) EXPECT_LT((found.q[i] - alone.q).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace gyre
