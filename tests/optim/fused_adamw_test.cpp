// libtorch's AdamW, which makes the steps of many parameters together, makes those of gyre's.
#include "gyre/optim/parameter/fused_adamw.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "fixture.h"
#include "gyre/optim/parameter/adam_kernel.h"

namespace gyre {
namespace {

using testing_support::context_of;

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

TEST(FusedAdamw, MakesTheStepsOfTheOthers) {
  if (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR < 204) GTEST_SKIP() << "this libtorch has none for the CPU";
  const c10::NoGradGuard no_grad;
  AdamSettings config;
  config.beta1 = 0.8;
  config.epsilon = 1e-4;
  for (const double factor : {1.0, 0.3}) {
    for (const double weight_decay : {0.0, 0.1}) {
      at::manual_seed(7);
      const std::vector<at::Tensor> a = {at::randn({5, 40}), at::randn({3}), at::randn({1000})}, b = clones(a);
      AdamwTensors together{a, {}, {}, {}}, others{b, {}, {}, {}};
      for (AdamwTensors* t : {&together, &others}) {
        for (const at::Tensor& weight : a) {
          t->exp_avgs.push_back(at::zeros_like(weight));
          t->exp_avg_sqs.push_back(at::zeros_like(weight));
        }
      }
      for (int64_t update = 1; update <= 5; ++update) {
        UpdateContext context = context_of(update, 1e-2);
        context.gradient_factor = factor;
        others.gradients = {at::randn({5, 40}), at::randn({3}), at::randn({1000})};
        together.gradients = clones(others.gradients);
        fused::adamw(together, weight_decay, config, context);
        const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, update);
        for (size_t i = 0; i < b.size(); ++i) {
          portable::adamw_step(b[i], others.gradients[i], others.exp_avgs[i], others.exp_avg_sqs[i], factors,
                               context.learning_rate, context.learning_rate * weight_decay, factor);
        }
      }
      for (size_t i = 0; i < b.size(); ++i) {
        EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-6)) << i;
        EXPECT_TRUE(at::allclose(together.exp_avg_sqs[i], others.exp_avg_sqs[i], 1e-5, 1e-8)) << i;
      }
    }
  }
}

// gyre's loop does not need it on the CPU, nor can it keep moments in bf16.
TEST(FusedAdamw, TakesWhatItHasAKernelFor) {
  FusedAdamw together;
  const at::Tensor x = at::ones({3});
  EXPECT_FALSE(together.take(x, x, x, x, 0.1));
  const at::Tensor moments = x.to(at::kBFloat16);
  EXPECT_FALSE(together.take(x, x, moments, moments, 0.1));
}

}  // namespace
}  // namespace gyre
