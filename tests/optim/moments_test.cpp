// Adam's moments kept in bf16: rounded by chance, right in the mean, the same whoever holds a part.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "fixture.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

using testing_support::adams_and_nadams;
using testing_support::context_of;
using testing_support::make;
using testing_support::matrix;
using testing_support::step;

struct Problem {
  at::Tensor weight, gradient, exp_avg, exp_avg_sq;

  Problem clone() const { return {weight.clone(), gradient.clone(), exp_avg.clone(), exp_avg_sq.clone()}; }
  Problem part(int64_t begin, int64_t count) const {
    const auto of = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    return {of(weight), of(gradient), of(exp_avg), of(exp_avg_sq)};
  }
};

Problem make_problem(int64_t count, at::ScalarType moments) {
  at::manual_seed(41);
  return {at::randn({count}), at::randn({count}), at::randn({count}).to(at::kBFloat16).to(moments),
          at::rand({count}).add_(0.1).to(at::kBFloat16).to(moments)};
}

template <typename Step>
void adam_step(const Step& kernel, const Problem& p, const AdamFactors& factors) {
  kernel(p.weight, p.gradient, p.exp_avg, p.exp_avg_sq, factors, 1e-2, 1e-3, 0.5);
}
template <typename Step>
void adam_step(const Step& kernel, const Problem& p, int64_t update) {
  adam_step(kernel, p, adam_factors(0.9, 0.999, 1e-8, update));
}

constexpr auto fast_step = [](const at::Tensor& weight, auto&&... rest) { adamw_step(weight, rest...); };
constexpr auto portable_step = [](const at::Tensor& weight, auto&&... rest) { portable::adamw_step(weight, rest...); };

// Rounded to nearest, most elements would be further away.
TEST(Bf16Moments, AreRightInTheMean) {
  constexpr int kUpdates = 2000;
  const Problem start = make_problem(300, at::kBFloat16), exact = make_problem(300, at::kFloat);
  adam_step(fast_step, exact, 1);
  for (const bool portable : {false, true}) {
    at::Tensor first = at::zeros({300}), second = at::zeros({300});
    for (int update = 1; update <= kUpdates; ++update) {
      const Problem p = start.clone();
      portable ? adam_step(portable_step, p, update) : adam_step(fast_step, p, update);
      first.add_(p.exp_avg.to(at::kFloat), 1.0 / kUpdates);
      second.add_(p.exp_avg_sq.to(at::kFloat), 1.0 / kUpdates);
      // One of the two neighbours.
      EXPECT_TRUE(((p.exp_avg - exact.exp_avg).abs() < exact.exp_avg.abs() / 128).all().item<bool>());
      EXPECT_TRUE(((p.exp_avg_sq - exact.exp_avg_sq).abs() < exact.exp_avg_sq / 128).all().item<bool>());
    }
    // The distance of neighbours is at most 1/128, so half of it the most that a draw deviates by; five sigmas.
    const double tolerance = 5 * 0.5 / 128 / std::sqrt(double{kUpdates});
    EXPECT_LT(((first - exact.exp_avg) / exact.exp_avg).abs().max().item<double>(), tolerance);
    EXPECT_LT(((second - exact.exp_avg_sq) / exact.exp_avg_sq).abs().max().item<double>(), tolerance);
  }
}

TEST(Bf16Moments, FollowChangesSmallerThanTheirLastPlace) {
  const Problem p = make_problem(300, at::kBFloat16);
  p.gradient.zero_();
  const at::Tensor before = p.exp_avg_sq.to(at::kFloat);
  for (int update = 1; update <= 2000; ++update) adam_step(fast_step, p, update);
  const double left = (p.exp_avg_sq.to(at::kFloat) / before).mean().item<double>();
  EXPECT_NEAR(left, std::pow(0.999, 2000), 0.02);
}

TEST(Bf16Moments, PortablyTheSameButForTheLastPlace) {
  for (const int64_t count : {1, 7, 4000}) {
    for (const AdamFactors& factors : adams_and_nadams()) {
      const Problem fast = make_problem(count, at::kBFloat16), portable = fast.clone();
      adam_step(fast_step, fast, factors);
      adam_step(portable_step, portable, factors);
      EXPECT_TRUE(at::allclose(fast.weight, portable.weight, 1e-5, 1e-6));
      // Products and sums are rounded apart or together, which seldom decides.
      for (const auto& [a, b] : {std::pair(fast.exp_avg, portable.exp_avg), {fast.exp_avg_sq, portable.exp_avg_sq}}) {
        EXPECT_TRUE(at::allclose(a.to(at::kFloat), b.to(at::kFloat), 1.0 / 128, 1e-6));
        EXPECT_LE((a != b).sum().item<int64_t>(), count / 100);
      }
      const Problem d = make_problem(count, at::kBFloat16), e = d.clone();
      adam_direction(d.gradient, d.exp_avg, d.exp_avg_sq, factors);
      portable::adam_direction(e.gradient, e.exp_avg, e.exp_avg_sq, factors);
      EXPECT_TRUE(at::allclose(d.gradient, e.gradient, 1e-5, 1e-6));
      EXPECT_LE((d.exp_avg_sq != e.exp_avg_sq).sum().item<int64_t>(), count / 100);
    }
  }
}

TEST(Bf16Moments, PartsHaveTheBitsOfTheWhole) {
  const Problem whole = make_problem(1000, at::kBFloat16), parts = whole.clone();
  adam_step(fast_step, whole, 5);
  adam_step(fast_step, parts.part(0, 333), 5);
  adam_step(fast_step, parts.part(333, 667), 5);
  EXPECT_TRUE(whole.weight.equal(parts.weight));
  EXPECT_TRUE(whole.exp_avg.equal(parts.exp_avg));
  EXPECT_TRUE(whole.exp_avg_sq.equal(parts.exp_avg_sq));
}

TEST(Bf16Moments, OfEveryOptimizerAreBf16AndTakeFp32Ones) {
  for (const std::string& kind : optimizer_kinds().names()) {
    OptimizerConfig config;
    const auto wide = make(kind, matrix("w", 6, 4, true), config);
    config.bf16_moments = true;
    const auto narrow = make(kind, matrix("w", 6, 4, true), config);
    at::manual_seed(1);
    at::Tensor w = at::ones({6, 4});
    for (int t = 1; t <= 5; ++t) step(*wide, w, at::randn({6, 4}), context_of(t, 1e-2, 0));
    narrow->load_state(wide->state());
    const NamedTensors from = wide->state();
    for (const auto& [name, tensor] : narrow->state()) {
      if (!name.ends_with("/exp_avg") && !name.ends_with("/exp_avg_sq")) continue;
      EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << kind << ": " << name;
      EXPECT_TRUE(tensor.equal(from.at(name).to(at::kBFloat16))) << kind << ": " << name;
    }
  }
}

// Noisy gradients of half the squared distance to a target.
TEST(Bf16Moments, EndWhereFp32Ends) {
  for (const char* kind : {"adamw", "nesterov-async", "basis-rotation"}) {
    const auto distance = [&](bool bf16) {
      OptimizerConfig config;
      config.bf16_moments = bf16;
      config.weight_decay = 0;
      if (kind == std::string("basis-rotation")) config.own = BasisRotationSettings{.interval = 4};
      const auto optimizer = make(kind, matrix("w", 12, 8, true), config);
      at::manual_seed(2);
      const at::Tensor target = at::randn({12, 8});
      at::Tensor w = at::zeros({12, 8});
      for (int t = 1; t <= 600; ++t) {
        step(*optimizer, w, (w - target) + at::randn({12, 8}).mul_(0.3), context_of(t, 1e-2, 0));
      }
      return (w - target).pow(2).mean().sqrt().item<double>();
    };
    EXPECT_LT(distance(true), 1.3 * distance(false) + 0.02) << kind;
  }
}

TEST(Adam, OnAGpuIsAsOnTheCpu) {
  if (device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 4096}, {0, 1003}, {1, 4000}}) {
      const Problem cpu = make_problem(begin + count, type).part(begin, count);
      const auto there = [&](const at::Tensor& x) {
        return at::cat({x.new_zeros(begin), x}).cuda().narrow(0, begin, count);
      };
      const Problem gpu = {there(cpu.weight), there(cpu.gradient), there(cpu.exp_avg), there(cpu.exp_avg_sq)};
      const auto expect_alike = [&](const at::Tensor& found, const at::Tensor& expected) {
        const double relative = found.scalar_type() == at::kFloat ? 1e-5 : 1.0 / 127;
        EXPECT_TRUE(at::allclose(found.cpu().to(at::kFloat), expected.to(at::kFloat), relative, 1e-6)) << count;
      };
      for (const AdamFactors& factors : adams_and_nadams()) {
        adam_step(fast_step, cpu, factors);
        adam_step(fast_step, gpu, factors);
        expect_alike(gpu.exp_avg, cpu.exp_avg);
        expect_alike(gpu.exp_avg_sq, cpu.exp_avg_sq);
        expect_alike(gpu.weight, cpu.weight);
        for (const auto& [own, other] : {std::pair(gpu.exp_avg, cpu.exp_avg), {gpu.exp_avg_sq, cpu.exp_avg_sq}}) {
          // The same draws, so nearly all elements are rounded alike.
          const double alike = at::eq(own.cpu(), other).to(at::kFloat).mean().item<double>();
          EXPECT_GT(alike, type == at::kBFloat16 ? 0.99 : 0);
          own.copy_(other);
        }
        adam_direction(cpu.gradient, cpu.exp_avg, cpu.exp_avg_sq, factors);
        adam_direction(gpu.gradient, gpu.exp_avg, gpu.exp_avg_sq, factors);
        expect_alike(gpu.gradient, cpu.gradient);
        for (const auto& [own, other] : {std::pair(gpu.exp_avg, cpu.exp_avg), {gpu.exp_avg_sq, cpu.exp_avg_sq}}) {
          own.copy_(other);
        }
        gpu.gradient.copy_(cpu.gradient);
      }
    }
  }
}

}  // namespace
}  // namespace gyre
