// libtorch's AdamW, which makes the steps of many parameters together, makes those of gyre's.
#include "gyre/optim/parameter/fused_adamw.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "fixture.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/tensors/device.h"

namespace gyre {
namespace {

using testing_support::context_of;

// Copies there.
std::vector<at::Tensor> on(at::Device device, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.to(device, tensor.scalar_type(), false, /*copy=*/true));
  return copies;
}

void expect_steps_of_the_others(at::Device device) {
  const c10::NoGradGuard no_grad;
  AdamSettings config;
  config.beta1 = 0.8;
  config.epsilon = 1e-4;
  for (const double factor : {1.0, 0.3}) {
    for (const double weight_decay : {0.0, 0.1}) {
      at::manual_seed(7);
      const std::vector<at::Tensor> a = {at::randn({5, 40}), at::randn({3}), at::randn({1000})}, b = on(at::kCPU, a);
      AdamwTensors together{on(device, a), {}, {}, {}}, others{b, {}, {}, {}};
      for (AdamwTensors* t : {&together, &others}) {
        for (const at::Tensor& weight : t->weights) {
          t->exp_avgs.push_back(at::zeros_like(weight));
          t->exp_avg_sqs.push_back(at::zeros_like(weight));
        }
      }
      for (int64_t update = 1; update <= 5; ++update) {
        UpdateContext context = context_of(update, 1e-2);
        context.gradient_factor = factor;
        others.gradients = {at::randn({5, 40}), at::randn({3}), at::randn({1000})};
        together.gradients = on(device, others.gradients);
        fused::adamw(together, weight_decay, config, context);
        const AdamFactors factors = adam_factors(config.beta1, config.beta2, config.epsilon, update);
        for (size_t i = 0; i < b.size(); ++i) {
          portable::adamw_step(b[i], others.gradients[i], others.exp_avgs[i], others.exp_avg_sqs[i], factors,
                               context.learning_rate, context.learning_rate * weight_decay, factor);
        }
      }
      for (size_t i = 0; i < b.size(); ++i) {
        EXPECT_TRUE(at::allclose(together.weights[i].cpu(), b[i], 1e-5, 1e-6)) << i;
        // CUDA's function takes 1 - beta2 of beta2 in fp32, which is off by 1e-5.
        EXPECT_TRUE(at::allclose(together.exp_avg_sqs[i].cpu(), others.exp_avg_sqs[i], 5e-5, 1e-8)) << i;
      }
    }
  }
}

TEST(FusedAdamw, MakesTheStepsOfTheOthers) {
  if (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR < 204) GTEST_SKIP() << "this libtorch has none for the CPU";
  expect_steps_of_the_others(at::kCPU);
}

TEST(FusedAdamw, MakesTheStepsOfTheOthersOnAGpu) {
  if (!FusedAdamw::is_there() || device_count(at::kCUDA) == 0) GTEST_SKIP() << "there is no GPU here";
  expect_steps_of_the_others(at::kCUDA);
}

TEST(FusedAdamw, TakesNoStepsOnTheCpu) {
  FusedAdamw together;
  const at::Tensor x = at::ones({3});
  EXPECT_FALSE(together.take(x, x, x, x, 0.1));
}

}  // namespace
}  // namespace gyre
