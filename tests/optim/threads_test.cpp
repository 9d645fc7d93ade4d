// Updates on several threads have the bits of one thread: every element is by itself, and norms are sums by tensor.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "fixture.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/optim/clipping.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/mixed_kernels.h"
#include "gyre/optim/weight_average.h"
#include "support/on_threads.h"

namespace gyre {
namespace {

constexpr int kThreads = 3;
constexpr int64_t kRows = 211, kWidth = 401;

void expect_those_of_one_thread(const std::function<std::vector<at::Tensor>()>& pass) {
  std::vector<at::Tensor> one;
  testing_support::on_threads(1, [&] { one = pass(); });
  testing_support::on_threads(kThreads, [&] {
    ASSERT_EQ(cpu::part_count(kRows, kWidth), kThreads);
    const std::vector<at::Tensor> several = pass();
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(several[i].equal(one[i])) << i;
  });
}

at::Tensor matrix() {
  return at::randn({kRows, kWidth});
}

SplitWeight halves_of(const at::Tensor& whole) {
  SplitWeight weight{at::empty(whole.sizes(), at::kBFloat16), at::empty(whole.sizes(), at::kShort), {}};
  weight.next = weight.version;
  split(whole, weight);
  return weight;
}

TEST(Threads, AdamsPass) {
  const at::Tensor whole = matrix(), gradient = matrix(), first = matrix(), second = matrix().square();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const AdamFactors& factors : testing_support::adams_and_nadams()) {
      expect_those_of_one_thread([&] {
        const at::Tensor w = whole.clone(), m = first.to(type, false, true), v = second.to(type, false, true);
        adamw_step(w, gradient, m, v, factors, 1e-2, 1e-3, 0.5);
        const SplitWeight halves = halves_of(whole);
        const at::Tensor m2 = first.to(type, false, true), v2 = second.to(type, false, true);
        adamw_step(halves, gradient, m2, v2, factors, 1e-2, 1e-3, 0.5);
        const at::Tensor direction = gradient.clone();
        adam_direction(direction, m2, v2, factors);
        return std::vector<at::Tensor>{w, m, v, halves.version, halves.rest, m2, v2, direction, joined(halves)};
      });
    }
  }
}

TEST(Threads, PassesOfRotation) {
  const at::Tensor whole = matrix(), other = matrix();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = other.to(type);
    expect_those_of_one_thread([&] {
      const at::Tensor average = whole.clone(), weight = whole.clone(), difference = at::empty_like(whole);
      average_into(average, x, 0.9);
      const SplitWeight halves = halves_of(whole);
      subtract_scaled(halves, x, 0.1, 0.9);
      // Rows that do not lie one after the other.
      const at::Tensor wide = at::cat({whole, whole}, 1), part = wide.narrow(1, 3, kWidth);
      subtract_scaled(part, x, 0.1, 0.9);
      set_difference(difference, part, x);
      move_average(weight, whole + other, 0.1);
      return std::vector<at::Tensor>{average, weight,     halves.version, halves.rest,
                                     wide,    difference, to_bf16(whole), to_bf16(part)};
    });
  }
}

TEST(Threads, NormsOfGradients) {
  std::vector<at::Tensor> gradients;
  for (const int64_t rows : {1, 300, 7, 211, 90}) gradients.push_back(at::randn({rows, kWidth}));
  expect_those_of_one_thread([&] { return std::vector<at::Tensor>{squared_norms(gradients)}; });
}

}  // namespace
}  // namespace gyre
