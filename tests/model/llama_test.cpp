// Tests Llama's layers against autograd, and the effects of its settings.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "gyre/core/error.h"
#include "gyre/model/stage.h"
#include "model/autograd.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;
using Tensors = std::vector<at::Tensor>;

// base^(-2 i / size), stretched by the wavelength as Llama 3.1 does it.
double rate(const LlamaSettings& settings, int64_t i, int64_t size) {
  const RopeScaling& scaling = settings.rope_scaling;
  const double usual = std::pow(settings.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(size));
  if (scaling.kind == "none") return usual;
  const double wavelength = 2 * M_PI / usual, original = static_cast<double>(scaling.original_context);
  if (scaling.kind == "linear" || wavelength > original / scaling.low_freq_factor) return usual / scaling.factor;
  if (wavelength < original / scaling.high_freq_factor) return usual;
  const double smooth =
      (original / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * usual / scaling.factor + smooth * usual;
}

// Elements i and i + size / 2 are rotated as one complex number, by the angle p rate(i).
at::Tensor rotated(const at::Tensor& x, const LlamaSettings& settings) {
  const int64_t context = x.size(-2), half = x.size(-1) / 2;
  const at::Tensor pairs = at::complex(x.narrow(-1, 0, half), x.narrow(-1, half, half));
  std::vector<double> rates;
  for (int64_t i = 0; i < half; ++i) rates.push_back(rate(settings, i, x.size(-1)));
  const at::Tensor angles =
      at::outer(at::arange(context, at::kDouble), at::tensor(rates, at::kDouble)).to(x.scalar_type());
  const at::Tensor turned = pairs * at::polar(at::ones_like(angles), angles);
  return at::cat({at::real(turned), at::imag(turned)}, -1);
}

// The same model written with operations that autograd understands; key-value heads are repeated.
at::Tensor reference_loss(const LlamaConfig& config, const Tensors& weights, const at::Tensor& tokens,
                          const at::Tensor& targets) {
  size_t next = 0;
  const auto norm = [&](const at::Tensor& x) {
    return x / (x.square().mean(-1, true) + config.norm_epsilon).sqrt() * weights[next++];
  };
  const auto product = [&](const at::Tensor& x, bool bias = false) {
    const at::Tensor y = at::matmul(x, weights[next++].t());
    return bias ? y + weights[next++] : y;
  };
  const int64_t batch = tokens.size(0), context = tokens.size(1);
  const int64_t heads = config.heads, shared = key_value_heads(config, heads);
  const int64_t size = head_size(config, config.width, heads);
  at::Tensor x = weights[next++].index_select(0, tokens.reshape({-1})).view({batch, context, config.width});
  const at::Tensor hidden = at::ones({context, context}, at::kBool).triu(1);
  for (int block = 0; block < config.layers; ++block) {
    const at::Tensor qkv = product(norm(x), config.qkv_bias);
    const auto part = [&](int64_t first, int64_t count) {
      const at::Tensor of = qkv.narrow(2, first * size, count * size).view({batch, context, count, size});
      return of.transpose(1, 2).repeat_interleave(heads / count, 1);
    };
    const at::Tensor projection = weights[next++];
    at::Tensor q = part(0, heads), k = part(heads, shared);
    if (config.qk_norm) q = norm(q), k = norm(k);
    q = rotated(q, config), k = rotated(k, config);
    const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(size));
    const at::Tensor p = at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
    const at::Tensor attended = at::matmul(p, part(heads + shared, shared)).transpose(1, 2);
    x = x + at::matmul(attended.reshape({batch, context, heads * size}), projection.t());
    const auto gate_and_up = product(norm(x)).split(config.mlp_width, -1);
    x = x + product(at::silu(gate_and_up[0]) * gate_and_up[1]);
  }
  const at::Tensor normed = norm(x);
  const at::Tensor logits = at::matmul(normed, (config.tie ? weights[0] : weights[next++]).t());
  return at::cross_entropy_loss(logits.view({-1, config.vocabulary}), targets.reshape({-1}));
}

class LlamaLayers : public ::testing::TestWithParam<std::tuple<at::ScalarType, int64_t, int64_t, bool, bool>> {};

TEST_P(LlamaLayers, EqualAutograd) {
  const auto& [type, shared, batch, qkv_bias, qwen3] = GetParam();
  LlamaConfig config = tiny_llama();
  config.key_value_heads = shared;
  config.qkv_bias = qkv_bias;
  config.qk_norm = config.tie = qwen3;
  if (qwen3) config.head_size = 10;
  const Stage stage(build_llama(config), 0);
  at::manual_seed(1);
  const at::Tensor tokens = at::randint(config.vocabulary, {batch, config.context}, at::kLong);
  const at::Tensor targets = at::randint(config.vocabulary, {batch, config.context}, at::kLong);
  expect_equal_to_autograd(stage, tokens, targets, type, [&](const std::vector<at::Tensor>& weights) {
    return reference_loss(config, weights, tokens, targets);
  });
}

// As many key-value heads as query heads, one for three, and one for all.
INSTANTIATE_TEST_SUITE_P(All, LlamaLayers,
                         ::testing::Combine(::testing::Values(at::kDouble, at::kFloat), ::testing::Values(0, 2, 1),
                                            ::testing::Values(1, 3), ::testing::Bool(), ::testing::Bool()));

// Of the pairs of a head, one turns as before, one is between and one is stretched by the whole factor.
TEST(Llama, StretchedPositionsEqualAutograd) {
  LlamaConfig config = tiny_llama();
  config.head_size = 6;
  config.rope_theta = 64;  // the pairs turn by 1, 1/4 and 1/16
  config.rope_scaling = {
      .kind = "llama3", .factor = 4, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 50};
  at::manual_seed(1);
  const at::Tensor tokens = at::randint(config.vocabulary, {2, config.context}, at::kLong);
  const at::Tensor targets = at::randint(config.vocabulary, {2, config.context}, at::kLong);
  for (const char* kind : {"llama3", "linear"}) {
    config.rope_scaling.kind = kind;
    EXPECT_NE(rate(config, 1, 6), 0.25);
    EXPECT_EQ(rate(config, 0, 6) == 1, kind == std::string("llama3"));
    expect_equal_to_autograd(
        Stage(build_llama(config), 0), tokens, targets, at::kDouble,
        [&](const std::vector<at::Tensor>& weights) { return reference_loss(config, weights, tokens, targets); });
  }
}

// Qwen3-0.6B's heads are twice as large as width / heads.
TEST(Llama, HeadsOfASizeOfTheirOwn) {
  LlamaConfig config = tiny_llama();
  config.heads = 5;  // does not divide the width
  config.key_value_heads = 1;
  config.head_size = 8;
  config.own.get<LlamaSettings>() = config;
  const Stage stage(build_llama(config), 0);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const ParameterSpec& spec : stage.parameters()) shapes[spec.name] = spec.shape;
  EXPECT_EQ(shapes.at("blocks.0.attention.qkv.weight"), (std::vector<int64_t>{56, 24}));
  EXPECT_EQ(shapes.at("blocks.0.attention.projection.weight"), (std::vector<int64_t>{24, 40}));
}

TEST(Llama, RowBlocksAreTheFusedMatrices) {
  const Stage stage(build_llama(tiny_llama()), 0);
  std::map<std::string, std::vector<int64_t>> rows;
  for (const ParameterSpec& spec : stage.parameters()) rows[spec.name] = spec.row_blocks;
  EXPECT_EQ(rows.at("blocks.0.attention.qkv.weight"), (std::vector<int64_t>{24, 8, 8}));
  EXPECT_EQ(rows.at("blocks.0.mlp.in.weight"), (std::vector<int64_t>{20, 20}));
}

TEST(Llama, WhatItsMlpIsWhereNobodySays) {
  ModelSettings settings;
  for (const auto& [width, hidden] : {std::pair<int64_t, int64_t>{4096, 10944}, {384, 1024}, {64, 192}}) {
    settings.width = width;
    EXPECT_EQ(llama_mlp_width(settings), hidden);
  }
  settings.mlp_width = 11008;  // as published
  EXPECT_EQ(llama_mlp_width(settings), 11008);
}

TEST(Llama, WhatDoesNotFitIsRefusedByItsKey) {
  const auto refused = [](const std::function<void(ModelSettings&, LlamaSettings&)>& change) {
    LlamaConfig config = tiny_llama();
    change(config, config);
    config.own.get<LlamaSettings>() = config;
    try {
      build_llama(config);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  EXPECT_PRED2(has, refused([](auto& model, auto&) { model.bias = true; }), "[model] bias is true");
  EXPECT_PRED2(has, refused([](auto& model, auto&) { model.activation = "gelu"; }), "is \"silu\"");
  EXPECT_PRED2(has, refused([](auto& model, auto&) { model.dropout = 0.1; }), "[model] dropout is 0.1");
  EXPECT_PRED2(has, refused([](auto&, auto& own) { own.key_value_heads = 4; }), "key_value_heads = 4 does not divide");
  EXPECT_PRED2(has, refused([](auto& model, auto&) { model.heads = 8; }), "a head has 3 elements");
  EXPECT_PRED2(has, refused([](auto& model, auto&) { model.heads = 10; }), "head_size");
  EXPECT_PRED2(has, refused([](auto&, auto& own) { own.head_size = 5; }), "[model.llama] head_size is 5");
  for (const char* kind : {"linear", "llama3"}) {
    EXPECT_PRED2(has, refused([&](auto&, auto& own) { own.rope_scaling.kind = kind; }), "needs a rope_factor above 1");
  }
  EXPECT_PRED2(has, refused([](auto&, auto& own) { own.rope_scaling.factor = 2; }), "needs a rope_scaling");
}

}  // namespace
}  // namespace gyre
