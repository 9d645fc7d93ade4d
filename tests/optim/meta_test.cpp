// Optimizers make their tensors where they are told to, and ask no device for a number: every one takes its steps on
// libtorch's meta device, which has shapes and no values, so that whatever reads one fails.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "fixture.h"
#include "gyre/optim/clipping.h"

namespace gyre {
namespace {

using namespace testing_support;

// A fused matrix, one with a long side, and what AdamW has.
std::vector<ParameterSpec> specs() {
  std::vector<ParameterSpec> specs = {matrix("qkv", 12, 4, true, {4, 4, 4}), matrix("up", 16, 4, true),
                                      matrix("embedding", 9, 4, false)};
  specs.emplace_back();
  specs.back().name = "bias";
  specs.back().shape = {5};
  return specs;
}

std::vector<at::Tensor> tensors(at::Device device) {
  std::vector<at::Tensor> made;
  for (const ParameterSpec& spec : specs()) made.push_back(at::ones(spec.shape, at::kFloat).to(device));
  return made;
}

constexpr int64_t kInterval = 3;

OptimizerConfig basis_rotation() {
  OptimizerConfig config = config_of("basis-rotation");
  rotation(config).interval = kInterval;
  return config;
}

// Clipped updates with delay, past three refreshes of a basis.
void train(const OptimizerConfig& config, const std::string& what) {
  const at::Device meta = at::kMeta;
  const auto optimizer = make_optimizer(config, specs(), meta);
  const std::vector<at::Tensor> weights = tensors(meta);
  for (int64_t update = 1; update <= 3 * kInterval + 1; ++update) {
    const std::vector<at::Tensor> gradients = tensors(meta);
    UpdateContext context = context_of(update, 1e-3);
    context.delay = 2;
    context.mean_delay = {2, 1};
    const std::vector<at::Tensor> squared = {squared_norms(gradients)};
    EXPECT_TRUE(whole_norm(squared).is_meta());
    clip(gradients, /*norm=*/1, 0.5);
    ASSERT_NO_THROW(optimizer->step(weights, gradients, context)) << what << ", update " << update;
  }
  for (const auto& [name, tensor] : optimizer->state()) EXPECT_EQ(tensor.device(), meta) << what << ": " << name;
}

TEST(MetaDevice, EveryOptimizerTakesItsStepsWithoutAValue) {
  for (const std::string& kind : optimizer_makers().names()) {
    train(kind == "basis-rotation" ? basis_rotation() : config_of(kind), kind);
  }
}

TEST(MetaDevice, EveryKindOfBasisIsRefreshedWithoutAValue) {
  OptimizerConfig config = basis_rotation();
  BasisRotationSettings& settings = rotation(config);
  for (const char* source : {"second", "first"}) {
    for (const char* refresh : {"fixed", "stage-aware", "adaptive"}) {
      for (const int64_t sketch : {0, 2}) {
        for (const bool every : {false, true}) {
          settings.source = source;
          settings.refresh = refresh;
          settings.geometry = every ? "unilateral" : "bilateral";
          settings.long_sides = every ? "whole" : "thin";
          settings.sketch = sketch;
          settings.max_dimension = sketch > 0 ? 3 : 0;
          settings.refresh_lag = every ? 1 : 0;
          settings.transport = every;
          settings.look_ahead = every ? 0.5 : 0;
          config.delay_warmup = every ? 5 : 0;
          train(config, std::string(source) + " " + refresh + ", sketch " + std::to_string(sketch));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gyre
