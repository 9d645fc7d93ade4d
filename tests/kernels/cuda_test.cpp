// Kernels on a GPU, where there is one, at sizes and alignments that portable_test.cpp does not have: rows that fill
// no pack, many rows, long rows. The reference is the portable path in fp64 on the CPU, of the same numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>
#include <vector>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/rms_norm.h"
#include "gyre/kernels/rotary.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

using Tensors = std::vector<at::Tensor>;
using Kernel = std::function<Tensors(Tensors)>;  // may change its arguments

// The parameter: rows and their width, and whether in bf16.
class CudaKernels : public ::testing::TestWithParam<std::tuple<std::pair<int64_t, int64_t>, bool>> {
 protected:
  void SetUp() override {
    if (device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
    at::manual_seed(3);
  }
  static int64_t rows() { return std::get<0>(GetParam()).first; }
  static int64_t width() { return std::get<0>(GetParam()).second; }
  static at::ScalarType type() { return std::get<1>(GetParam()) ? at::kBFloat16 : at::kFloat; }
  static at::Tensor numbers(at::IntArrayRef sizes) { return at::randn(sizes).to(type()); }

  // The kernel gives the reference's values there, but for rounding, and the same bits when it is called again.
  static void expect_like(const Tensors& inputs, const Kernel& kernel, const Kernel& reference) {
    const auto on_gpu = [&] {
      Tensors there;
      for (const at::Tensor& input : inputs)
        there.push_back(input.to(at::kCUDA, /*non_blocking=*/false, /*copy=*/true));
      Tensors back;
      for (const at::Tensor& result : kernel(there)) back.push_back(result.cpu());
      return back;
    };
    Tensors wide;
    for (const at::Tensor& input : inputs) wide.push_back(input.is_floating_point() ? input.to(at::kDouble) : input);
    const Tensors found = on_gpu(), again = on_gpu(), expected = reference(wide);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i], again[i])) << i;
      const double size = expected[i].abs().max().item<double>();
      const double step = found[i].scalar_type() == at::kBFloat16 ? 1.0 / 128 : 1e-5;
      const at::Tensor off = (found[i].to(at::kDouble) - expected[i]).abs() - step * expected[i].abs();
      EXPECT_LT(off.max().item<double>(), 1e-2 * step * size + 1e-9) << i;
    }
  }
};

TEST_P(CudaKernels, CrossEntropy) {
  const at::Tensor targets = at::randint(width(), {rows()}, at::kLong);
  const auto with = [&](auto&& function) {
    return [&](Tensors in) {
      const at::Tensor loss = function(in[0], in[1], 1.0 / 64);
      return Tensors{in[0], loss};
    };
  };
  expect_like({numbers({rows(), width()}) * 4, targets}, with(cross_entropy_in_place),
              with(portable::cross_entropy_in_place));
}

TEST_P(CudaKernels, LayerNorm) {
  const Kernel reference = [](const Tensors& in) {
    const auto norm = portable::layer_norm(in[0], in[1], in[2], 1e-5);
    const auto back = portable::layer_norm_backward(in[3], in[0], norm.mean, norm.rstd, in[1]);
    return Tensors{norm.output, norm.mean, norm.rstd, back.input, back.weight, back.bias};
  };
  const Kernel kernel = [](const Tensors& in) {
    const auto norm = layer_norm(in[0], in[1], in[2], 1e-5);
    EXPECT_TRUE(at::equal(norm.output, layer_norm_output(in[0], norm.mean, norm.rstd, in[1], in[2])));
    const auto back = layer_norm_backward(in[3], in[0], norm.mean, norm.rstd, in[1]);
    return Tensors{norm.output, norm.mean, norm.rstd, back.input, back.weight, back.bias};
  };
  expect_like({numbers({rows(), width()}) + 1, numbers({width()}), numbers({width()}), numbers({rows(), width()})},
              kernel, reference);
}

TEST_P(CudaKernels, RmsNorm) {
  const Kernel reference = [](const Tensors& in) {
    const auto norm = portable::rms_norm(in[0], in[1], 1e-5);
    const auto back = portable::rms_norm_backward(in[2], in[0], norm.rstd, in[1]);
    return Tensors{norm.output, norm.rstd, back.input, back.weight};
  };
  const Kernel kernel = [](const Tensors& in) {
    const auto norm = rms_norm(in[0], in[1], 1e-5);
    EXPECT_TRUE(at::equal(norm.output, rms_norm_output(in[0], norm.rstd, in[1])));
    const auto back = rms_norm_backward(in[2], in[0], norm.rstd, in[1]);
    return Tensors{norm.output, norm.rstd, back.input, back.weight};
  };
  expect_like({numbers({rows(), width()}), numbers({width()}), numbers({rows(), width()})}, kernel, reference);
}

TEST_P(CudaKernels, GradientsOfBiases) {
  const auto with = [](auto&& function) {
    return [&](const Tensors& in) {
      at::Tensor added = in[1].clone(), overwritten = at::full_like(in[1], NAN);
      function(in[0], added, true);
      function(in[0], overwritten, false);
      return Tensors{added, overwritten};
    };
  };
  expect_like({numbers({rows(), width()}), at::randn({width()})}, with(linear_backward_bias),
              with(portable::linear_backward_bias));
}

TEST_P(CudaKernels, Activations) {
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    const auto plain = [=](auto&& forward, auto&& backward) {
      return [=](const Tensors& in) {
        const auto back = backward(in[1], in[0], activation);
        EXPECT_TRUE(at::equal(back.output, forward(in[0], activation)));
        return Tensors{back.output, back.grad};
      };
    };
    expect_like({numbers({rows(), width()}), numbers({rows(), width()})}, plain(activate, activate_backward),
                plain(portable::activate, portable::activate_backward));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CudaKernels,
                         ::testing::Combine(::testing::Values(std::pair{1, 8}, std::pair{3, 40}, std::pair{5, 37},
                                                              std::pair{1000, 768}, std::pair{300, 1601},
                                                              std::pair{70, 50257}),
                                            ::testing::Bool()));

TEST(CudaMasks, AreThoseOfTheCpu) {
  if (device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
  const RandomStream stream(7, StreamPurpose::Dropout, 5, 2);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t count : {1, 3, 4, 1001}) {
      const at::Tensor x = at::empty({count}, type);
      EXPECT_TRUE(at::equal(dropout_mask(x.cuda(), 0.3, stream).cpu(), dropout_mask(x, 0.3, stream))) << count;
    }
  }
}

TEST(CudaRotations, AreThoseOfTheCpu) {
  if (device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
  at::manual_seed(3);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t size : {6, 64}) {
      const RotaryPositions positions(50, size, 10000);
      at::Tensor here = at::randn({2, 30, 3 * size}).to(type), there = here.cuda();
      at::Tensor view = here.view({2, 30, 3, size}).transpose(1, 2), far = there.view({2, 30, 3, size}).transpose(1, 2);
      // The angles are the CPU's: cosines have other last bits on a GPU.
      const RotaryAngles angles = positions.angles(4, 30, here), far_angles{angles.cos.cuda(), angles.sin.cuda()};
      rotate_in_place(view, angles);
      rotate_in_place(far, far_angles);
      EXPECT_TRUE(at::equal(there.cpu(), here)) << size;
      rotate_back_in_place(view, angles);
      rotate_back_in_place(far, far_angles);
      EXPECT_TRUE(at::equal(there.cpu(), here)) << size;
    }
  }
}

}  // namespace
}  // namespace gyre
