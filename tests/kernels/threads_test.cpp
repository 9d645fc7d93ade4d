// Passes over activations on several threads: each gives the bits of one thread, but for sums over rows, which are
// added up by parts.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/parallel_for.h"
#include "gyre/kernels/rms_norm.h"
#include "gyre/kernels/rotary.h"
#include "support/on_threads.h"

namespace gyre {
namespace {

using testing_support::on_threads;

constexpr int kThreads = 3;
constexpr int64_t kRows = 211, kWidth = 401;  // neither is a multiple of anything here
constexpr double kEpsilon = 1e-5;

struct Results {
  std::vector<at::Tensor> exact, sums;
};

// `pass` must leave its inputs as they are.
void expect_those_of_one_thread(const std::function<Results()>& pass) {
  Results one;
  on_threads(1, [&] { one = pass(); });
  on_threads(kThreads, [&] {
    ASSERT_EQ(cpu::part_count(kRows, kWidth), kThreads);
    const Results several = pass(), again = pass();
    for (size_t i = 0; i < one.exact.size(); ++i) EXPECT_TRUE(several.exact[i].equal(one.exact[i])) << i;
    for (size_t i = 0; i < one.sums.size(); ++i) {
      EXPECT_TRUE(several.sums[i].allclose(one.sums[i], 1e-4, 1e-4)) << i;
      EXPECT_TRUE(several.sums[i].equal(again.sums[i])) << i;
    }
  });
}

at::Tensor rows(at::ScalarType type, int64_t width = kWidth) {
  return at::randn({kRows, width}).to(type);
}

TEST(Threads, Activations) {
  for (const Activation activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = rows(type), grad = rows(type), pair = rows(type, 2 * kWidth);
      expect_those_of_one_thread([&]() -> Results {
        const ActivationBackward plain = activate_backward(grad, x, activation);
        const ActivationBackward gated = gated_activate_backward(grad, pair, activation);
        return {{activate(x, activation), plain.grad, plain.output, gated_activate(pair, activation), gated.grad,
                 gated.output},
                {}};
      });
    }
  }
}

TEST(Threads, Norms) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = rows(type), grad = rows(type), weight = at::randn({kWidth}).to(type),
                     bias = at::randn({kWidth}).to(type);
    expect_those_of_one_thread([&]() -> Results {
      const LayerNormResult layer = layer_norm(x, weight, bias, kEpsilon);
      const LayerNormGradients of_layer = layer_norm_backward(grad, x, layer.mean, layer.rstd, weight);
      const RmsNormResult rms = rms_norm(x, weight, kEpsilon);
      const RmsNormGradients of_rms = rms_norm_backward(grad, x, rms.rstd, weight);
      return {{layer.output, layer.mean, layer.rstd, layer_norm_output(x, layer.mean, layer.rstd, weight, bias),
               of_layer.input, rms.output, rms.rstd, rms_norm_output(x, rms.rstd, weight), of_rms.input},
              {of_layer.weight, of_layer.bias, of_rms.weight}};
    });
  }
}

TEST(Threads, CrossEntropy) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor logits = rows(type), targets = at::randint(kWidth, {kRows}, at::kLong);
    expect_those_of_one_thread([&]() -> Results {
      at::Tensor gradient = logits.clone();
      const at::Tensor loss = cross_entropy_in_place(gradient, targets, 0.25);
      return {{gradient}, {loss}};
    });
  }
}

TEST(Threads, GradientsOfBiases) {
  const at::Tensor grad = rows(at::kBFloat16), before = at::randn({kWidth});
  expect_those_of_one_thread([&]() -> Results {
    at::Tensor alone = at::empty({kWidth}), added = before.clone();
    linear_backward_bias(grad, alone, false);
    linear_backward_bias(grad, added, true);
    return {{}, {alone, added}};
  });
}

TEST(Threads, Dropout) {
  const RandomStream stream(1, StreamPurpose::Dropout, 2);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = rows(type);
    expect_those_of_one_thread([&]() -> Results {
      const at::Tensor mask = dropout_mask(x, 0.3, stream);
      at::Tensor kept = at::empty_like(x);
      apply_dropout(x, mask, 0.3, kept);
      return {{mask, kept}, {}};
    });
  }
}

TEST(Threads, RotaryPositions) {
  constexpr int64_t kPositions = 40, kHeads = 7, kSize = 64;
  const RotaryPositions positions(kPositions, rotary_frequencies(kSize, 1e4));
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({3, kPositions, kHeads, kSize}).to(type);
    expect_those_of_one_thread([&]() -> Results {
      const at::Tensor turned = x.clone();
      at::Tensor heads = turned.transpose(1, 2);
      rotate_in_place(heads, positions.angles(0, kPositions, x));
      return {{turned}, {}};
    });
  }
}

}  // namespace
}  // namespace gyre
