// Tests ModuleLayer: a model of torch's own modules trains through the pipeline as plain autograd trains it.
#include "gyre/model/module_layer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gyre/core/error.h"
#include "gyre/model/stage.h"

namespace gyre {
namespace {

namespace nn = torch::nn;

std::shared_ptr<nn::Module> perceptron(int64_t in, int64_t out) {
  return nn::Sequential(nn::Linear(in, 16), nn::Tanh(), nn::Linear(16, out)).ptr();
}
at::Tensor run_sequential(nn::Module& module, const at::Tensor& x) {
  return module.as<nn::SequentialImpl>()->forward(x);
}
at::Tensor squared_error(const at::Tensor& y, const at::Tensor& target) {
  return (y - target).square().mean();
}

Stage make_stage(uint64_t seed) {
  torch::manual_seed(seed);
  return Stage({std::make_shared<ModuleLayer>("one", perceptron(3, 5), run_sequential),
                std::make_shared<ModuleLayer>("two", perceptron(5, 2), run_sequential, squared_error)},
               0);
}

std::vector<at::Tensor> initial_weights(const Stage& stage, at::ScalarType type = at::kFloat) {
  std::vector<at::Tensor> weights;
  for (const auto& spec : stage.parameters()) weights.push_back(initial_value(spec, 1).to(type));
  return weights;
}

// The two perceptrons written by hand, with the given leaf tensors as parameters.
at::Tensor by_hand(const std::vector<at::Tensor>& w, const at::Tensor& x, const at::Tensor& target) {
  const auto half = [&](const at::Tensor& in, size_t at) {
    return at::linear(at::tanh(at::linear(in, w[at], w[at + 1])), w[at + 2], w[at + 3]);
  };
  return squared_error(half(half(x, 0), 4), target);
}

std::vector<at::Tensor> gradients_by_hand(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                                          const at::Tensor& target) {
  const at::AutoGradMode recording(true);
  std::vector<at::Tensor> leaves;
  for (const auto& weight : weights) leaves.push_back(weight.detach().clone().requires_grad_());
  return torch::autograd::grad({by_hand(leaves, x, target)}, leaves);
}

std::vector<at::Tensor> zeros(const Stage& stage) {
  std::vector<at::Tensor> result;
  for (const auto& spec : stage.parameters()) result.push_back(at::zeros(spec.shape));
  return result;
}

TEST(ModuleLayer, EachMicrobatchInFlightKeepsItsOwnWeights) {
  const at::NoGradGuard no_grad;
  const Stage stage = make_stage(1);
  EXPECT_EQ(stage.parameters()[0].name, "one.0.weight");
  constexpr int kInFlight = 3;
  std::vector<std::vector<at::Tensor>> versions;
  std::vector<StageSaved> saved(kInFlight);
  std::vector<at::Tensor> inputs, targets;
  for (int m = 0; m < kInFlight; ++m) {
    versions.push_back(initial_weights(stage));
    for (auto& weight : versions.back()) weight.add_(0.1 * m);
    inputs.push_back(at::randn({4, 3}));
    targets.push_back(at::randn({4, 2}));
    LayerContext context;
    context.targets = targets.back();
    const at::Tensor loss = stage.forward(versions[m], inputs[m], context, saved[m]);
    EXPECT_NEAR(loss.item<double>(), by_hand(versions[m], inputs[m], targets[m]).item<double>(), 1e-6);
  }
  for (const int m : {1, 0, 2}) {  // weights are stashed, so any order works
    auto gradients = zeros(stage);
    stage.backward(versions[m], at::scalar_tensor(1.0), saved[m], gradients);
    const auto expected = gradients_by_hand(versions[m], inputs[m], targets[m]);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::allclose(gradients[i], expected[i], 1e-5, 1e-7));
  }
}

TEST(ModuleLayer, OtherWeightsInTheBackwardAreUsed) {
  const at::NoGradGuard no_grad;
  const Stage stage = make_stage(2);
  const auto old = initial_weights(stage);
  auto latest = initial_weights(stage);
  for (auto& weight : latest) weight.mul_(1.5);
  const at::Tensor x = at::randn({4, 3}), target = at::randn({4, 2});
  LayerContext context;
  context.targets = target;
  StageSaved saved;
  stage.forward(old, x, context, saved);
  auto gradients = zeros(stage);
  stage.backward(latest, at::scalar_tensor(1.0), saved, gradients);
  // The last layer computes its forward again, with the old layer's output as its input.
  const at::Tensor middle = at::linear(at::tanh(at::linear(x, old[0], old[1])), old[2], old[3]);
  const at::AutoGradMode recording(true);
  std::vector<at::Tensor> leaves;
  for (size_t i = 4; i < 8; ++i) leaves.push_back(latest[i].clone().requires_grad_());
  const at::Tensor loss =
      squared_error(at::linear(at::tanh(at::linear(middle, leaves[0], leaves[1])), leaves[2], leaves[3]), target);
  const auto expected = torch::autograd::grad({loss}, leaves);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::allclose(gradients[4 + i], expected[i], 1e-5, 1e-7));
}

// Versions are compared by number, whatever tensors have them.
TEST(ModuleLayer, TheForwardIsRepeatedForAnotherVersionAlone) {
  const at::NoGradGuard no_grad;
  int forwards = 0;
  const Stage stage({std::make_shared<ModuleLayer>("one", nn::Linear(3, 2).ptr(),
                                                   [&](nn::Module& module, const at::Tensor& x) {
                                                     ++forwards;
                                                     return module.as<nn::LinearImpl>()->forward(x);
                                                   })},
                    0);
  const auto weights = initial_weights(stage);
  const auto copies = initial_weights(stage);
  const auto forwards_with = [&](VersionId forward, VersionId backward) {
    forwards = 0;
    StageSaved saved;
    stage.forward({weights, forward}, at::ones({4, 3}), {}, saved);
    auto gradients = zeros(stage);
    stage.backward({copies, backward}, at::ones({4, 2}), saved, gradients);
    return forwards;
  };
  EXPECT_EQ(forwards_with({7}, {7}), 1);
  EXPECT_EQ(forwards_with({7}, {8}), 2);
  EXPECT_EQ(forwards_with({7}, {7, true}), 2) << "corrected weights are others";
  EXPECT_EQ(forwards_with({}, {}), 2) << "nothing is known of them";
}

TEST(ModuleLayer, IntegerInputsHaveNoGradient) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(3);
  const Stage stage({std::make_shared<ModuleLayer>("table", nn::Embedding(7, 4).ptr(),
                                                   [](nn::Module& module, const at::Tensor& x) {
                                                     return module.as<nn::EmbeddingImpl>()->forward(x);
                                                   })},
                    0);
  const auto weights = initial_weights(stage);
  StageSaved saved;
  stage.forward(weights, at::tensor({1, 1, 5}, at::kLong), {}, saved);
  auto gradients = zeros(stage);
  EXPECT_FALSE(stage.backward(weights, at::ones({3, 4}), saved, gradients).defined());
  EXPECT_EQ(gradients[0].sum(1)[1].item<double>(), 8);
}

TEST(ModuleLayer, RefusesRunningStatistics) {
  EXPECT_THROW(ModuleLayer("norm", nn::BatchNorm1d(4).ptr(), run_sequential), InputError);
}

// A clone of a module has neither the flag nor the tie.
TEST(ModuleLayer, RefusesFrozenParametersAndTiedOnes) {
  const auto frozen = perceptron(3, 2);
  frozen->named_parameters()["2.weight"].set_requires_grad(false);
  const nn::Linear twice(4, 4);
  const auto tied = nn::Sequential(twice, nn::Tanh(), twice).ptr();
  for (const auto& [module, words] : {std::pair(frozen, "'2.weight' is frozen"), {tied, "'0.weight' and '2.weight'"}}) {
    try {
      ModuleLayer("one", module, run_sequential);
      FAIL() << words;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

// What the functor's InputError says, or "no error".
template <typename Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ModuleLayer, RefusesNoModuleAndNoForward) {
  EXPECT_EQ(refusal([] { ModuleLayer("one", nullptr, run_sequential); }), "module 'one': the module is null");
  EXPECT_EQ(refusal([] { ModuleLayer("one", perceptron(3, 2), nullptr); }),
            "module 'one': the forward function is null");
}

// The last layer's training step on a batch of 16, which may have no targets.
std::string refusal_of_step(ModuleLayer::Loss loss, bool has_targets) {
  const at::NoGradGuard no_grad;
  const Stage stage({std::make_shared<ModuleLayer>("out", perceptron(3, 1), run_sequential, std::move(loss))}, 0);
  return refusal([&] {
    std::vector<StageSaved> saved(1);
    LayerContext context;
    if (has_targets) context.targets = at::randn({16, 1});
    const auto weights = initial_weights(stage);
    stage.forward(weights, at::randn({16, 3}), context, saved[0]);
    auto gradients = zeros(stage);
    stage.backward(weights, at::scalar_tensor(1.0), saved[0], gradients);
  });
}

TEST(ModuleLayer, RefusesALossThatIsNoMean) {
  EXPECT_EQ(refusal_of_step(squared_error, true), "no error");
  const auto of_each = [](const at::Tensor& y, const at::Tensor& target) { return (y - target).square(); };
  EXPECT_EQ(refusal_of_step(of_each, true),
            "module 'out': its loss has the shape (16, 1); give a mean, of no dimensions");
  EXPECT_EQ(refusal_of_step(squared_error, false),
            "module 'out' has a loss and no targets; give a loss to the last layer alone, and targets to every batch");
}

TEST(ModuleLayer, WhatTheOutputDoesNotDependOnHasAZeroGradient) {
  const at::NoGradGuard no_grad;
  const ModuleLayer ignores_input("one", perceptron(3, 2), [](nn::Module& module, const at::Tensor& x) {
    return run_sequential(module, at::ones_like(x));
  });
  const ModuleLayer is_constant("two", perceptron(3, 2), [](nn::Module&, const at::Tensor& x) {
    return at::ones({x.size(0), 2});
  });
  for (const ModuleLayer* layer : {&ignores_input, &is_constant}) {
    std::vector<at::Tensor> weights, sums;
    for (const auto& spec : layer->parameters()) {
      weights.push_back(spec.initialization.value);
      sums.push_back(at::zeros(spec.shape));
    }
    Saved saved;
    layer->forward(weights, at::randn({4, 3}), LayerContext(), saved);
    const at::Tensor grad_input = layer->backward_input(weights, at::ones({4, 2}), saved);
    EXPECT_TRUE(at::equal(grad_input, at::zeros({4, 3})));
    layer->backward_weights(saved, sums);
    EXPECT_EQ(sums.back().abs().sum().item<double>() > 0, layer == &ignores_input);
  }
}

}  // namespace
}  // namespace gyre
