// Tests sums of gradients: a tensor that holds no sum yet is overwritten, whatever is in it.
#include "gyre/tensors/gradient_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gyre {
namespace {

std::vector<at::Tensor> leftovers() {
  return {at::full({2, 3}, NAN), at::full({4}, NAN), at::full({4}, NAN)};
}

TEST(GradientSums, TheFirstGradientIsWrittenAndOthersAreAdded) {
  std::vector<at::Tensor> tensors = leftovers();
  std::vector<char> holds(3);
  const GradientSums sums(tensors, holds);
  EXPECT_FALSE(sums.holds(0));
  sums.add(0, at::full({2, 3}, 5));
  EXPECT_TRUE(sums.holds(0));
  EXPECT_TRUE(tensors[0].equal(at::full({2, 3}, 5.0f)));
  sums.add(0, at::full({2, 3}, 2));
  EXPECT_TRUE(tensors[0].equal(at::full({2, 3}, 7.0f)));
  EXPECT_FALSE(sums.holds(1));
}

TEST(GradientSums, WhatCanOnlyAddGetsZerosAtFirst) {
  std::vector<at::Tensor> tensors = leftovers();
  std::vector<char> holds(3);
  const GradientSums sums(tensors, holds);
  sums.sum(1).add_(1);
  sums.sum(1).add_(1);
  EXPECT_TRUE(tensors[1].equal(at::full({4}, 2.0f)));
}

TEST(GradientSums, PartsShareWhatIsHeld) {
  std::vector<at::Tensor> tensors = leftovers();
  std::vector<char> holds(3);
  const GradientSums sums(tensors, holds);
  sums.part(1, 2).add(1, at::ones({4}));
  EXPECT_FALSE(sums.holds(0));
  EXPECT_FALSE(sums.holds(1));
  EXPECT_TRUE(sums.holds(2));
  EXPECT_TRUE(tensors[2].equal(at::ones({4})));
}

TEST(GradientSums, WhatIsNotThereIsMadeForItsFirstGradient) {
  std::vector<at::Tensor> tensors(3);
  std::vector<char> holds(3);
  std::vector<ParameterSpec> specs(3);
  specs[0].shape = {2, 3};
  specs[1].shape = specs[2].shape = {4};
  const GradientSums sums(tensors, holds, specs, at::kCPU);
  sums.part(1, 2).add(0, at::full({4}, 5));
  sums.part(1, 2).add(0, at::full({4}, 2));
  sums.sum(2).add_(1);
  EXPECT_FALSE(tensors[0].defined());
  EXPECT_TRUE(tensors[1].equal(at::full({4}, 7.0f)));
  EXPECT_TRUE(tensors[2].equal(at::ones({4})));
}

TEST(GradientSums, OfTensorsAloneAllHoldSums) {
  std::vector<at::Tensor> tensors = {at::ones({4})};
  const GradientSums sums(tensors);
  sums.add(0, at::ones({4}));
  sums.sum(0).add_(1);
  EXPECT_TRUE(sums.part(0, 1).holds(0));
  EXPECT_TRUE(tensors[0].equal(at::full({4}, 3.0f)));
}

}  // namespace
}  // namespace gyre
