// Runs every layer of ours on libtorch's `meta` device, which has shapes and types but no data. Forward and backward
// give the same shapes as on the CPU and save as much, so they make every tensor on the input's device and read no
// values.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <utility>

#include "gyre/model/stage.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;

struct Seen {
  std::vector<at::Tensor> tensors;  // outputs and gradients, layer by layer
  std::vector<int64_t> kept;        // bytes after the forward, and between the halves of the backward
};

Seen run(const Layers& layers, at::Device device, at::ScalarType type, at::Tensor x, const at::Tensor& targets,
         bool loss_in_backward) {
  Seen seen;
  std::vector<Stage> stages;
  std::vector<std::vector<at::Tensor>> weights;
  std::vector<StageSaved> saved(layers.size());
  x = x.to(device);
  for (size_t i = 0; i < layers.size(); ++i) {
    stages.emplace_back(Layers{layers[i]}, static_cast<int>(i));
    weights.emplace_back();
    for (const ParameterSpec& spec : stages[i].parameters())
      weights[i].push_back(initial_value(spec, 1).to(device, type));
    LayerContext context;
    if (i + 1 == layers.size()) context.targets = targets;  // on the host
    context.loss_in_backward = loss_in_backward;
    x = stages[i].forward(weights[i], x, context, saved[i]);
    seen.tensors.push_back(x);
    seen.kept.push_back(saved_bytes(saved[i]));
  }
  at::Tensor grad = at::scalar_tensor(0.5);  // of a loss, on the host
  for (size_t i = layers.size(); i-- > 0;) {
    std::vector<at::Tensor> gradients;
    for (const ParameterSpec& spec : stages[i].parameters()) {
      gradients.push_back(at::zeros(spec.shape, at::TensorOptions().dtype(at::kFloat).device(device)));
    }
    grad = stages[i].backward_input(weights[i], grad, saved[i]);
    seen.kept.push_back(saved_bytes(saved[i]));
    stages[i].backward_weights(saved[i], gradients);
    EXPECT_EQ(saved_bytes(saved[i]), 0);
    seen.tensors.push_back(grad);
    seen.tensors.insert(seen.tensors.end(), gradients.begin(), gradients.end());
  }
  return seen;
}

void expect_same_on_meta(const Layers& layers, const at::Tensor& tokens, const at::Tensor& targets) {
  const c10::NoGradGuard no_grad;
  for (const auto& [type, loss_in_backward] :
       {std::pair{at::kFloat, false}, {at::kFloat, true}, {at::kBFloat16, false}, {at::kBFloat16, true}}) {
    const Seen cpu = run(layers, at::kCPU, type, tokens, targets, loss_in_backward);
    const Seen meta = run(layers, at::kMeta, type, tokens, targets, loss_in_backward);
    EXPECT_EQ(cpu.kept, meta.kept);
    ASSERT_EQ(cpu.tensors.size(), meta.tensors.size());
    for (size_t i = 0; i < cpu.tensors.size(); ++i) {
      ASSERT_EQ(cpu.tensors[i].defined(), meta.tensors[i].defined()) << i;
      if (!cpu.tensors[i].defined()) continue;
      EXPECT_TRUE(meta.tensors[i].is_meta()) << i;
      EXPECT_EQ(cpu.tensors[i].sizes(), meta.tensors[i].sizes()) << i;
      EXPECT_EQ(cpu.tensors[i].scalar_type(), meta.tensors[i].scalar_type()) << i;
    }
  }
}

TEST(Meta, Gpt) {
  for (const char* activation : {"gelu", "gelu-tanh", "relu"}) {
    ModelSettings config = tiny_gpt();
    config.activation = activation;
    config.dropout = 0.1;
    config.bias = config.activation == "gelu";
    const at::Tensor tokens = at::ones({3, 43}, at::kLong);
    expect_same_on_meta(build_gpt(config), tokens, tokens);
  }
}

TEST(Meta, Bert) {
  for (const bool post_norm : {false, true}) {
    BertConfig config = tiny_bert();
    config.dropout = 0.1;
    config.norm = post_norm ? "post" : "pre";
    config.sentence_order = true;
    at::Tensor targets = at::full({3, 43}, -1, at::kLong);
    targets.narrow(1, 2, 6).fill_(1);
    targets.select(1, 0).fill_(1);
    expect_same_on_meta(build_bert(config), at::ones({3, 43}, at::kLong), targets);
  }
}

TEST(Meta, Llama) {
  const LlamaConfig config = tiny_llama();
  const at::Tensor tokens = at::ones({3, config.context}, at::kLong);
  expect_same_on_meta(build_llama(config), tokens, tokens);
}

}  // namespace
}  // namespace gyre
