// A family that is put together from parts alone (tests/model/families.h), against autograd.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>

#include "gyre/model/stage.h"
#include "model/autograd.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;
using Tensors = std::vector<at::Tensor>;

// Element i turns with element i + size / 2: as one complex number, by e^(i p base^(-2 i / size)).
at::Tensor rotated(const at::Tensor& x, double base) {
  const int64_t context = x.size(-2), half = x.size(-1) / 2;
  const at::Tensor pairs = at::complex(x.narrow(-1, 0, half), x.narrow(-1, half, half));
  const at::Tensor rates = at::pow(base, at::arange(half, at::kDouble) * (-2.0 / static_cast<double>(x.size(-1))));
  const at::Tensor angles = at::outer(at::arange(context, at::kDouble), rates).to(x.scalar_type());
  const at::Tensor turned = pairs * at::polar(at::ones_like(angles), angles);
  return at::cat({at::real(turned), at::imag(turned)}, -1);
}

// The same model written with operations that autograd understands, heads of keys and values repeated.
at::Tensor reference_loss(const LlamaConfig& config, const Tensors& weights, const at::Tensor& tokens,
                          const at::Tensor& targets) {
  size_t next = 0;
  const auto norm = [&](const at::Tensor& x) {
    return x / (x.square().mean(-1, true) + config.epsilon).sqrt() * weights[next++];
  };
  const auto product = [&](const at::Tensor& x) { return at::matmul(x, weights[next++].t()); };
  const int64_t batch = tokens.size(0), context = tokens.size(1);
  const auto [heads, shared] = config.heads;
  const int64_t size = config.width / heads;
  at::Tensor x = weights[next++].index_select(0, tokens.reshape({-1})).view({batch, context, config.width});
  const at::Tensor hidden = at::ones({context, context}, at::kBool).triu(1);
  for (int block = 0; block < config.layers; ++block) {
    const at::Tensor qkv = product(norm(x));
    const auto part = [&, keys = shared](int64_t first, int64_t count) {
      const at::Tensor of = qkv.narrow(2, first * size, count * size).view({batch, context, count, size});
      return of.transpose(1, 2).repeat_interleave(count == keys ? config.heads.query / keys : 1, 1);
    };
    const at::Tensor q = rotated(part(0, heads), config.rotary_base),
                     k = rotated(part(heads, shared), config.rotary_base);
    const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(size));
    const at::Tensor p = at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
    x = x +
        product(at::matmul(p, part(heads + shared, shared)).transpose(1, 2).reshape({batch, context, config.width}));
    const auto gate_and_up = product(norm(x)).split(config.mlp_width, -1);
    x = x + product(at::silu(gate_and_up[0]) * gate_and_up[1]);
  }
  const at::Tensor logits = product(norm(x));
  return at::cross_entropy_loss(logits.view({-1, config.vocabulary}), targets.reshape({-1}));
}

class LlamaLayers : public ::testing::TestWithParam<std::tuple<at::ScalarType, int64_t, int64_t>> {};

TEST_P(LlamaLayers, EqualAutograd) {
  const auto& [type, shared, batch] = GetParam();
  LlamaConfig config;
  config.heads.key_value = shared;
  const Stage stage(build_llama(config), 0);
  at::manual_seed(1);
  const at::Tensor tokens = at::randint(config.vocabulary, {batch, config.context}, at::kLong);
  const at::Tensor targets = at::randint(config.vocabulary, {batch, config.context}, at::kLong);
  expect_equal_to_autograd(stage, tokens, targets, type, [&](const std::vector<at::Tensor>& weights) {
    return reference_loss(config, weights, tokens, targets);
  });
}

INSTANTIATE_TEST_SUITE_P(All, LlamaLayers,
                         ::testing::Combine(::testing::Values(at::kDouble, at::kFloat), ::testing::Values(1, 2, 6),
                                            ::testing::Values(1, 3)));

TEST(Llama, RowBlocksAreTheFusedMatrices) {
  const Stage stage(build_llama({}), 0);
  std::map<std::string, std::vector<int64_t>> rows;
  for (const ParameterSpec& spec : stage.parameters()) rows[spec.name] = spec.row_blocks;
  EXPECT_EQ(rows.at("blocks.0.attention.qkv.weight"), (std::vector<int64_t>{24, 8, 8}));
  EXPECT_EQ(rows.at("blocks.0.mlp.in.weight"), (std::vector<int64_t>{20, 20}));
}

}  // namespace
}  // namespace gyre
