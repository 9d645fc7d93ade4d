// Windows of gradients: memory is reused without being cleared, and no window gets gradients of another.
#include "gyre/runtime/gradient_windows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace gyre {
namespace {

using Layout = GradientWindows::Layout;

std::vector<ParameterSpec> specs() {
  ParameterSpec a, b;
  a.shape = {3, 5};
  b.shape = {7};
  return {a, b};
}

bool all_are(const at::Tensor& tensor, double value) {
  return tensor.eq(value).all().item<bool>();
}

class GradientWindowsTest : public ::testing::TestWithParam<Layout> {};

TEST_P(GradientWindowsTest, WhatHadNoGradientIsZeroWhateverTheMemoryHeld) {
  GradientWindows windows(specs(), at::kCPU, GetParam());
  for (int64_t window = 0; window < 3; ++window) {
    const auto value = static_cast<double>(window + 1);
    const GradientSums sums = windows.sums(window);
    const size_t with = static_cast<size_t>(window % 2), without = 1 - with;
    sums.add(with, at::full({1}, value));
    EXPECT_EQ(windows.count(window), 1);
    windows.sums(window).add(with, at::full({1}, value));
    EXPECT_EQ(windows.count(window), 2);
    const WindowGradient closed = windows.close(window).own;
    EXPECT_TRUE(all_are(closed.tensors[with], 2 * value)) << window;
    EXPECT_TRUE(all_are(closed.tensors[without], 0)) << window;
    EXPECT_EQ(closed.tensors[1].sizes(), at::IntArrayRef({7}));
  }
}

TEST_P(GradientWindowsTest, OpenOnesDoNotMix) {
  GradientWindows windows(specs(), at::kCPU, GetParam());
  for (const int64_t window : {4, 5}) windows.sums(window).add(0, at::full({1}, static_cast<double>(window)));
  windows.sums(4).add(0, at::ones({1}));
  EXPECT_TRUE(all_are(windows.close(4).own.tensors[0], 5));
  EXPECT_TRUE(all_are(windows.close(5).own.tensors[0], 5));
}

TEST_P(GradientWindowsTest, TheTiedWeightsGradientIsByItself) {
  ParameterSpec table;
  table.shape = {2, 2};
  GradientWindows windows(specs(), at::kCPU, GetParam(), TiedWeight{table, 1});
  const GradientSums sums = windows.sums(0);
  ASSERT_EQ(sums.size(), 3U);
  for (size_t i = 0; i < 3; ++i) sums.add(i, at::full({1}, static_cast<double>(i + 1)));
  const GradientWindows::Closed closed = windows.close(0);
  ASSERT_EQ(closed.own.tensors.size(), 2U);
  EXPECT_TRUE(all_are(closed.own.tensors[0], 1));
  EXPECT_TRUE(all_are(closed.tied->tensors[0], 2));
  EXPECT_TRUE(all_are(closed.own.tensors[1], 3));
}

INSTANTIATE_TEST_SUITE_P(Layouts, GradientWindowsTest, ::testing::Values(Layout::Flat, Layout::Whole),
                         [](const auto& layout) { return layout.param == Layout::Flat ? "Flat" : "Whole"; });

TEST(GradientWindows, WholeOnesTakeMemoryAsGradientsCome) {
  GradientWindows windows(specs(), at::kCPU, Layout::Whole);
  const GradientSums sums = windows.sums(0);
  sums.add(1, at::ones({1}));
  const WindowGradient closed = windows.close(0).own;
  EXPECT_FALSE(closed.flat);
  EXPECT_EQ(closed.tensors[1].storage().nbytes(), 7 * sizeof(float));
}

TEST(GradientWindows, FlatOnesAreOneTensor) {
  GradientWindows windows(specs(), at::kCPU, Layout::Flat);
  windows.sums(0).add(0, at::ones({1}));
  const WindowGradient closed = windows.close(0).own;
  ASSERT_TRUE(closed.flat);
  EXPECT_EQ(closed.flat->flat.sum().item<double>(), 15);
}

}  // namespace
}  // namespace gyre
