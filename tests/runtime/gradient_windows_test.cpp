// Windows of gradients: buffers are used again as they were left, and no window gets anything of another.
#include "gyre/runtime/gradient_windows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace gyre {
namespace {

std::vector<ParameterSpec> specs() {
  ParameterSpec a, b;
  a.shape = {3, 5};
  b.shape = {7};
  return {a, b};
}

TEST(GradientWindows, WhatHadNoGradientIsZeroWhateverTheBufferHeld) {
  GradientWindows windows(specs(), at::kCPU);
  for (int64_t window = 0; window < 3; ++window) {
    const auto value = static_cast<double>(window + 1);
    const GradientSums sums = windows.sums(window);
    const size_t with = static_cast<size_t>(window % 2), without = 1 - with;
    sums.add(with, at::full({1}, value));
    EXPECT_EQ(windows.count(window), 1);
    windows.sums(window).add(with, at::full({1}, value));
    EXPECT_EQ(windows.count(window), 2);
    const PooledBuffer closed = windows.close(window).own;
    EXPECT_TRUE(closed->tensors[with].eq(2 * value).all().item<bool>()) << window;
    EXPECT_TRUE(closed->tensors[without].eq(0).all().item<bool>()) << window;
  }
}

TEST(GradientWindows, OpenOnesDoNotMix) {
  GradientWindows windows(specs(), at::kCPU);
  for (const int64_t window : {4, 5}) windows.sums(window).add(0, at::full({1}, static_cast<double>(window)));
  windows.sums(4).add(0, at::ones({1}));
  EXPECT_TRUE(windows.close(4).own->tensors[0].eq(5).all().item<bool>());
  EXPECT_TRUE(windows.close(5).own->tensors[0].eq(5).all().item<bool>());
}

}  // namespace
}  // namespace gyre
