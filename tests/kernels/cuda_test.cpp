// Kernels on a GPU, where there is one, at sizes and alignments that portable_test.cpp does not have: rows that fill
// no pack, many rows, long rows. The reference is the portable path in fp64 on the CPU, of the same numbers.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>
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

struct Case {
  int64_t rows, width;
  at::ScalarType type;

  at::Tensor matrix() const { return at::randn({rows, width}).to(type); }
  at::Tensor wide_matrix() const { return at::randn({rows, 2 * width}).to(type); }
  at::Tensor vector() const { return at::randn({width}).to(type); }
};

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
    at::manual_seed(3);
  }

  static std::vector<Case> cases() {
    std::vector<Case> cases;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const auto& [rows, width] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {3, 40}, {5, 37}, {1000, 768}, {300, 1601}, {70, 50257}}) {
        cases.push_back({rows, width, type});
      }
    }
    return cases;
  }

  // The kernel gives the reference's values there, but for rounding, and the same bits when it is called again.
  static void expect_like(const Case& of, const Tensors& inputs, const Kernel& kernel, const Kernel& reference) {
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
      SCOPED_TRACE(fmt::format("{} rows of {}, {}, result {}", of.rows, of.width, at::toString(of.type), i));
      EXPECT_TRUE(at::equal(found[i], again[i]));
      const double size = expected[i].abs().max().item<double>();
      const double step = found[i].scalar_type() == at::kBFloat16 ? 1.0 / 128 : 1e-5;
      const at::Tensor off = (found[i].to(at::kDouble) - expected[i]).abs() - step * expected[i].abs();
      EXPECT_LT(off.max().item<double>(), 1e-1 * step * size + 1e-9);
    }
  }
};

TEST_F(CudaKernels, CrossEntropy) {
  const auto with = [&](auto&& function) {
    return [&](Tensors in) {
      const at::Tensor loss = function(in[0], in[1], 1.0 / 64);
      return Tensors{in[0], loss};
    };
  };
  for (const Case& c : cases()) {
    const at::Tensor targets = at::randint(c.width, {c.rows}, at::kLong);
    expect_like(c, {c.matrix() * 4, targets}, with(cross_entropy_in_place), with(portable::cross_entropy_in_place));
  }
}

TEST_F(CudaKernels, LayerNorm) {
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
  for (const Case& c : cases()) {
    expect_like(c, {c.matrix() + 1, c.vector(), c.vector(), c.matrix()}, kernel, reference);
  }
}

TEST_F(CudaKernels, RmsNorm) {
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
  for (const Case& c : cases()) expect_like(c, {c.matrix(), c.vector(), c.matrix()}, kernel, reference);
}

TEST_F(CudaKernels, GradientsOfBiases) {
  const auto with = [](auto&& function) {
    return [&](const Tensors& in) {
      at::Tensor added = in[1].clone(), overwritten = at::full_like(in[1], NAN);
      function(in[0], added, true);
      function(in[0], overwritten, false);
      return Tensors{added, overwritten};
    };
  };
  for (const Case& c : cases()) {
    expect_like(c, {c.matrix(), at::randn({c.width})}, with(linear_backward_bias),
                with(portable::linear_backward_bias));
  }
}

TEST_F(CudaKernels, Activations) {
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    const auto with = [=](auto&& forward, auto&& backward) {
      return [=](const Tensors& in) {
        const auto back = backward(in[1], in[0], activation);
        EXPECT_TRUE(at::equal(back.output, forward(in[0], activation)));
        return Tensors{back.output, back.grad};
      };
    };
    for (const Case& c : cases()) {
      expect_like(c, {c.matrix(), c.matrix()}, with(activate, activate_backward),
                  with(portable::activate, portable::activate_backward));
      expect_like(c, {c.wide_matrix(), c.matrix()}, with(gated_activate, gated_activate_backward),
                  with(portable::gated_activate, portable::gated_activate_backward));
    }
  }
}

TEST_F(CudaKernels, MasksAreThoseOfTheCpu) {
  const RandomStream stream(7, StreamPurpose::Dropout, 5, 2);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t count : {1, 3, 4, 1001}) {
      const at::Tensor x = at::empty({count}, type);
      EXPECT_TRUE(at::equal(dropout_mask(x.cuda(), 0.3, stream).cpu(), dropout_mask(x, 0.3, stream))) << count;
    }
  }
}

TEST_F(CudaKernels, RotationsAreThoseOfTheCpu) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t size : {6, 64}) {
      const RotaryPositions positions(50, rotary_frequencies(size, 10000));
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
