// Tests Layer::passing_bytes and weights_passing_bytes against what a layer's backward really holds at its peak.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gyre/kernels/linear.h"
#include "gyre/model/stage.h"
#include "gyre/tensors/host_memory.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;

struct Size {
  int64_t sequences, context, width;
};
constexpr Size kManyTokens{8, 128, 64}, kLargeMatrices{1, 32, 256};

template <typename Settings>
Settings sized(Settings settings, const Size& size) {
  settings.layers = 1;
  settings.width = size.width;
  settings.heads = 4;
  settings.context = size.context;
  settings.mlp_width = 0;
  return settings;
}

// Two backwards of every layer but the last: of the first, gradients are allocated as they come; those of the second
// are added to them.
void expect_passing(const Layers& layers, at::ScalarType type, const Size& size, const std::string& what) {
  const c10::NoGradGuard no_grad;
  heed_limit_of_instructions();  // as the program does
  HostMemory memory(1);
  const auto live = [&] { return static_cast<double>(memory.bytes().live); };
  MicrobatchShape shape{static_cast<double>(size.sequences), static_cast<double>(size.context),
                        static_cast<double>(at::elementSize(type))};
  for (size_t i = 1; i + 1 < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    const Stage stage({layers[i]}, static_cast<int>(i));
    std::vector<at::Tensor> weights;
    for (const ParameterSpec& spec : stage.parameters()) weights.push_back(initial_value(spec, 1).to(type));
    const double of_gradients = 4.0 * static_cast<double>(stage.parameter_count());
    std::vector<at::Tensor> gradients(weights.size());
    std::vector<char> holds(weights.size());
    LayerContext context;
    context.keeps_weights = true;
    const auto random = [&] { return at::randn({size.sequences, size.context, size.width}).to(type); };
    {  // Products and positions keep what they allocate at their first use.
      StageSaved saved;
      std::vector<at::Tensor> none(weights.size());
      std::vector<char> holds_none(weights.size());
      stage.forward(weights, random(), context, saved);
      stage.backward(weights, random(), saved, GradientSums(none, holds_none, stage.parameters(), at::kCPU));
    }
    for (shape.adds = false;; shape.adds = true) {
      const double before = live();
      StageSaved saved;
      stage.forward(weights, random(), context, saved);
      const double kept = live() - before;
      const at::Tensor grad = random();
      memory.forget_peak();
      stage.backward(weights, grad, saved, GradientSums(gradients, holds, stage.parameters(), at::kCPU));
      const double taken = static_cast<double>(memory.bytes().peak) - before;
      const double of_own = layer.weights_passing_bytes(shape) + (shape.adds ? 0 : of_gradients);
      const double said = kept + std::max(layer.passing_bytes(shape), of_own);
      const std::string of = fmt::format("{}: {}, adds {}", what, layer.name(), shape.adds);
      EXPECT_GE(said, 0.95 * taken) << of;
      EXPECT_LE(said, 1.12 * taken) << of;
      if (shape.adds) break;
    }
  }
}

void expect_passing(const Layers& layers, const Size& size, const std::string& what) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    expect_passing(layers, type, size, fmt::format("{}, {}, width {}", what, at::toString(type), size.width));
  }
}

TEST(PassingBytes, OfGpt) {
  for (const Size& size : {kManyTokens, kLargeMatrices}) {
    for (const double dropout : {0.0, 0.1}) {
      ModelSettings config = sized(tiny_gpt(), size);
      config.dropout = dropout;
      expect_passing(build_gpt(config), size, fmt::format("gpt, dropout {}", dropout));
    }
  }
}

TEST(PassingBytes, OfBert) {
  for (const Size& size : {kManyTokens, kLargeMatrices}) {
    for (const char* norm : {"pre", "post"}) {
      BertConfig config = sized(tiny_bert(), size);
      config.norm = norm;
      expect_passing(build_bert(config), size, fmt::format("bert, {}-norm", norm));
    }
  }
}

TEST(PassingBytes, OfLlama) {
  for (const Size& size : {kManyTokens, kLargeMatrices}) {
    for (const int64_t key_value_heads : {1, 4}) {
      LlamaConfig config = sized(tiny_llama(), size);
      config.key_value_heads = key_value_heads;
      expect_passing(build_llama(config), size, fmt::format("llama, {} key-value heads", key_value_heads));
    }
  }
}

}  // namespace
}  // namespace gyre
