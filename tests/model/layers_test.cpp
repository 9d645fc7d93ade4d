// Tests that the explicit backward of every layer equals what autograd derives from plain operations.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "gyre/core/error.h"
#include "gyre/model/gpt.h"
#include "gyre/model/stage.h"

namespace gyre {
namespace {

ModelSettings small(bool bias, const std::string& activation) {
  ModelSettings config;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.context = 5;
  config.vocabulary = 17;
  config.bias = bias;
  config.activation = activation;
  return config;
}

// The same model written with operations that autograd understands, in the type of `weights`.
at::Tensor reference_loss(const ModelSettings& config, const std::vector<at::Tensor>& weights, const at::Tensor& tokens,
                          const at::Tensor& targets) {
  size_t next = 0;
  const auto take = [&] { return weights[next++]; };
  const auto take_bias = [&] { return config.bias ? weights[next++] : at::Tensor(); };
  const auto norm = [&](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    const at::Tensor n = (x - x.mean(-1, true)) / (x.var(-1, false, true) + 1e-5).sqrt() * w;
    return b.defined() ? n + b : n;
  };
  const auto affine = [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    const at::Tensor y = at::matmul(x, w.t());
    return b.defined() ? y + b : y;
  };
  const int64_t batch = tokens.size(0), context = tokens.size(1), size = config.width / config.heads;
  at::Tensor table = take(), positions = take();
  at::Tensor x = table.index_select(0, tokens.reshape({-1})).view({batch, context, config.width}) +
                 positions.narrow(0, 0, context);
  const at::Tensor hidden = at::ones({context, context}, at::kBool).triu(1);
  for (int block = 0; block < config.layers; ++block) {
    at::Tensor w = take(), b = take_bias();
    const at::Tensor n1 = norm(x, w, b);
    w = take(), b = take_bias();
    const auto qkv = affine(n1, w, b).split(config.width, -1);
    const auto heads = [&](const at::Tensor& t) {
      return t.view({batch, context, config.heads, size}).transpose(1, 2);
    };
    const at::Tensor scores =
        at::matmul(heads(qkv[0]), heads(qkv[1]).transpose(-1, -2)) / std::sqrt(static_cast<double>(size));
    const at::Tensor p = at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
    const at::Tensor attended = at::matmul(p, heads(qkv[2])).transpose(1, 2).reshape({batch, context, config.width});
    w = take(), b = take_bias();
    x = x + affine(attended, w, b);
    w = take(), b = take_bias();
    const at::Tensor n2 = norm(x, w, b);
    w = take(), b = take_bias();
    at::Tensor h = affine(n2, w, b);
    h = config.activation == "relu" ? at::relu(h) : at::gelu(h, config.activation == "gelu" ? "none" : "tanh");
    w = take(), b = take_bias();
    x = x + affine(h, w, b);
  }
  at::Tensor w = take(), b = take_bias();
  const at::Tensor logits = at::matmul(norm(x, w, b), take().t());
  return at::cross_entropy_loss(logits.view({-1, config.vocabulary}), targets.reshape({-1}));
}

struct Problem {
  Stage stage;
  std::vector<at::Tensor> weights;
  at::Tensor tokens, targets;
};

Problem make_problem(const ModelSettings& config, at::ScalarType type) {
  Problem problem{Stage(build_gpt(config), 0), {}, {}, {}};
  at::manual_seed(1);
  // Larger than the usual initial weights, so that every non-linearity matters.
  for (const ParameterSpec& spec : problem.stage.parameters()) {
    problem.weights.push_back(
        initial_value(spec, 1).mul(spec.shape.size() == 2 ? 15.0 : 1.0).add(at::randn(spec.shape).mul(0.1)).to(type));
  }
  problem.tokens = at::randint(config.vocabulary, {3, config.context}, at::kLong);
  problem.targets = at::randint(config.vocabulary, {3, config.context}, at::kLong);
  return problem;
}

struct Result {
  double loss;
  std::vector<at::Tensor> gradients;
};

Result run(const Problem& problem, at::ScalarType gradient_type, double scale = 1, bool split = false) {
  const at::NoGradGuard no_grad;
  Result result;
  for (const auto& weight : problem.weights)
    result.gradients.push_back(at::full(weight.sizes(), split ? NAN : 0.0, gradient_type));
  LayerContext context;
  context.targets = problem.targets;
  StageSaved saved;
  result.loss = problem.stage.forward(problem.weights, problem.tokens, context, saved).item<double>();
  const at::Tensor grad = at::scalar_tensor(scale);
  if (split) {
    problem.stage.backward_input(problem.weights, grad, saved);
    std::vector<char> holds(result.gradients.size());  // none holds a sum
    problem.stage.backward_weights(saved, {result.gradients, holds});
  } else {
    problem.stage.backward(problem.weights, grad, saved, result.gradients);
  }
  return result;
}

class GptLayers : public ::testing::TestWithParam<std::tuple<bool, std::string, at::ScalarType>> {};

TEST_P(GptLayers, EqualAutograd) {
  const auto& [bias, activation, type] = GetParam();
  const ModelSettings config = small(bias, activation);
  const Problem problem = make_problem(config, type);
  const Result ours = run(problem, type);

  std::vector<at::Tensor> leaves;
  for (const auto& weight : problem.weights) leaves.push_back(weight.detach().clone().requires_grad_());
  const at::Tensor loss = reference_loss(config, leaves, problem.tokens, problem.targets);
  loss.backward();
  const double tolerance = type == at::kDouble ? 1e-10 : 2e-5;
  EXPECT_NEAR(ours.loss, loss.item<double>(), tolerance);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const double error = (ours.gradients[i] - leaves[i].grad()).abs().max().item<double>();
    const double size = leaves[i].grad().abs().max().item<double>();
    EXPECT_LT(error, tolerance * std::max(1.0, size)) << problem.stage.parameters()[i].name;
    EXPECT_GT(size, 0) << problem.stage.parameters()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GptLayers,
                         ::testing::Combine(::testing::Bool(), ::testing::Values("gelu", "gelu-tanh", "relu"),
                                            ::testing::Values(at::kDouble, at::kFloat)));

TEST(GptLayersBf16, StayNearFp32) {
  const ModelSettings config = small(true, "gelu");
  const Problem exact = make_problem(config, at::kFloat);
  Problem rounded = exact;
  for (auto& weight : rounded.weights) weight = weight.to(at::kBFloat16);
  const Result a = run(exact, at::kFloat), b = run(rounded, at::kFloat);
  EXPECT_NEAR(a.loss, b.loss, 0.05);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    const double norm = a.gradients[i].norm().item<double>();
    EXPECT_LT((a.gradients[i] - b.gradients[i]).norm().item<double>(), 0.15 * norm) << exact.stage.parameters()[i].name;
  }
}

TEST(GptLayersSplit, InputAndWeightHalvesEqualTheWhole) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Problem problem = make_problem(small(true, "gelu"), type);
    const Result whole = run(problem, at::kFloat), halves = run(problem, at::kFloat, 1, true);
    for (size_t i = 0; i < whole.gradients.size(); ++i) EXPECT_TRUE(whole.gradients[i].equal(halves.gradients[i]));
  }
}

// With the latest weights the backward gets newer ones, and those that the forward read may be overwritten by then.
TEST(GptLayersWeights, WhatTheForwardReadMayBeWrittenOver) {
  const at::NoGradGuard no_grad;
  const Problem problem = make_problem(small(true, "gelu"), at::kFloat);
  std::vector<at::Tensor> newer;
  for (const at::Tensor& weight : problem.weights) newer.push_back(weight + at::randn_like(weight));
  LayerContext context;
  context.targets = problem.targets;
  const auto gradients = [&](bool written_over) {
    std::vector<at::Tensor> read, result;
    for (const at::Tensor& weight : problem.weights) {
      read.push_back(weight.clone());
      result.push_back(at::zeros_like(weight));
    }
    StageSaved saved;
    problem.stage.forward(read, problem.tokens, context, saved);
    for (size_t i = 0; written_over && i < read.size(); ++i) read[i].copy_(newer[i]);
    problem.stage.backward(written_over ? read : newer, at::scalar_tensor(1.0), saved, result);
    return result;
  };
  const auto kept = gradients(false), written_over = gradients(true);
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(kept[i].equal(written_over[i])) << problem.stage.parameters()[i].name;
  }
}

TEST(GptLayersWeights, ThoseThatTheBackwardIsGivenAgainAreNotCopied) {
  const at::NoGradGuard no_grad;
  const Problem problem = make_problem(small(true, "gelu"), at::kFloat);
  std::array<int64_t, 2> bytes{};
  std::array<std::vector<at::Tensor>, 2> gradients;
  for (const size_t keeps : {0, 1}) {
    LayerContext context;
    context.targets = problem.targets;
    context.keeps_weights = keeps == 1;
    for (const at::Tensor& weight : problem.weights) gradients[keeps].push_back(at::zeros_like(weight));
    StageSaved saved;
    problem.stage.forward(problem.weights, problem.tokens, context, saved);
    bytes[keeps] = saved_bytes(saved);
    problem.stage.backward(problem.weights, at::scalar_tensor(1.0), saved, gradients[keeps]);
  }
  EXPECT_LT(bytes[1], bytes[0]);
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(gradients[0][i].equal(gradients[1][i])) << problem.stage.parameters()[i].name;
  }
}

TEST(GptLayersScale, TheLossWeightScalesGradients) {
  const Problem problem = make_problem(small(true, "gelu"), at::kDouble);
  const Result whole = run(problem, at::kDouble), quarter = run(problem, at::kDouble, 0.25);
  for (size_t i = 0; i < whole.gradients.size(); ++i) {
    EXPECT_TRUE(at::allclose(whole.gradients[i] * 0.25, quarter.gradients[i], 1e-12, 1e-14));
  }
}

// Runs the model cut into stages at the given layers.
Result run_cut(const ModelSettings& config, const Problem& problem, const std::vector<int>& cuts, double dropout_seed) {
  const at::NoGradGuard no_grad;
  const Layers layers = build_gpt(config);
  std::vector<Stage> stages;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    stages.emplace_back(Layers(layers.begin() + cuts[i], layers.begin() + cuts[i + 1]), cuts[i]);
  }
  LayerContext context;
  context.targets = problem.targets;
  context.seed = static_cast<uint64_t>(dropout_seed);
  std::vector<StageSaved> saved(stages.size());
  Result result;
  for (const auto& weight : problem.weights) result.gradients.push_back(at::zeros(weight.sizes(), at::kFloat));
  at::Tensor x = problem.tokens;
  size_t offset = 0;
  std::vector<size_t> offsets;
  for (size_t s = 0; s < stages.size(); ++s) {
    offsets.push_back(offset);
    const size_t count = stages[s].parameters().size();
    x = stages[s].forward(std::span(problem.weights).subspan(offset, count), x, context, saved[s]);
    offset += count;
  }
  result.loss = x.item<double>();
  at::Tensor grad = at::scalar_tensor(1.0);
  for (size_t s = stages.size(); s-- > 0;) {
    const size_t count = stages[s].parameters().size();
    grad = stages[s].backward(std::span(problem.weights).subspan(offsets[s], count), grad, saved[s],
                              std::span(result.gradients).subspan(offsets[s], count));
  }
  return result;
}

TEST(Stages, AnyCutGivesTheSameBits) {
  ModelSettings config = small(true, "gelu");
  config.dropout = 0.3;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Problem problem = make_problem(config, type);
    const Result whole = run_cut(config, problem, {0, 6}, 7);
    for (const std::vector<int>& cuts :
         {std::vector<int>{0, 1, 6}, {0, 2, 6}, {0, 3, 6}, {0, 4, 6}, {0, 1, 2, 3, 4, 5, 6}}) {
      const Result cut = run_cut(config, problem, cuts, 7);
      EXPECT_EQ(whole.loss, cut.loss);
      for (size_t i = 0; i < whole.gradients.size(); ++i) EXPECT_TRUE(whole.gradients[i].equal(cut.gradients[i]));
    }
    EXPECT_NE(whole.loss, run_cut(config, problem, {0, 6}, 8).loss);  // another seed, another mask
  }
}

TEST(Dropout, GradientsFollowTheForwardsMask) {
  // A finite difference along one direction, in fp64, with the mask that (seed, microbatch, layer) fixes.
  ModelSettings config = small(true, "gelu");
  config.dropout = 0.4;
  Problem problem = make_problem(config, at::kDouble);
  const Result at_point = run(problem, at::kDouble);
  std::vector<at::Tensor> direction;
  double slope = 0;
  for (size_t i = 0; i < problem.weights.size(); ++i) {
    direction.push_back(at::randn(problem.weights[i].sizes(), at::kDouble));
    slope += (direction[i] * at_point.gradients[i]).sum().item<double>();
  }
  const double h = 1e-6;
  const auto shifted = [&](double by) {
    Problem moved = problem;
    for (size_t i = 0; i < moved.weights.size(); ++i) moved.weights[i] = problem.weights[i] + direction[i] * by;
    return run(moved, at::kDouble).loss;
  };
  EXPECT_NEAR((shifted(h) - shifted(-h)) / (2 * h), slope, 1e-6 * std::max(1.0, std::abs(slope)));
}

TEST(Head, WithoutTargetsGivesLogitsThatMatchTheLoss) {
  const ModelSettings config = small(false, "relu");
  const Problem problem = make_problem(config, at::kDouble);
  const at::NoGradGuard no_grad;
  StageSaved saved;
  const at::Tensor logits = problem.stage.forward(problem.weights, problem.tokens, {}, saved);
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{3, 5, 17}));
  const at::Tensor loss = at::cross_entropy_loss(logits.view({-1, 17}), problem.targets.view({-1}));
  EXPECT_NEAR(run(problem, at::kDouble).loss, loss.item<double>(), 1e-12);
  // Attention is causal, so a shorter prompt gives the same outputs.
  const at::Tensor prefix =
      problem.stage.forward(problem.weights, problem.tokens.narrow(1, 0, 3).contiguous(), {}, saved);
  EXPECT_TRUE(at::allclose(prefix, logits.narrow(1, 0, 3), 1e-10, 1e-12));
}

TEST(Initialization, DependsOnSeedAndNameAlone) {
  const Layers layers = build_gpt(small(true, "gelu"));
  const Stage whole(layers, 0), second(Layers(layers.begin() + 3, layers.begin() + 4), 3);
  const ParameterSpec& spec = second.parameters()[2];
  EXPECT_EQ(spec.name, "blocks.1.attention.qkv.weight");
  for (const ParameterSpec& other : whole.parameters()) {
    if (other.name == spec.name) {
      EXPECT_TRUE(initial_value(other, 3).equal(initial_value(spec, 3)));
    }
  }
  EXPECT_FALSE(initial_value(spec, 3).equal(initial_value(spec, 4)));
  EXPECT_NEAR(initial_value(spec, 3).std().item<double>(), 0.02, 0.003);
}

TEST(Gpt, RefusesSizesThatDoNotFit) {
  ModelSettings config = small(true, "gelu");
  config.heads = 5;
  EXPECT_THROW(build_gpt(config), InputError);
  config = small(true, "swish");
  EXPECT_THROW(build_gpt(config), InputError);
}

}  // namespace
}  // namespace gyre
