// Tests BERT's layers against autograd, and the contracts of its batches and heads.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gyre/batches/masked_batches.h"
#include "gyre/core/error.h"
#include "gyre/model/bert.h"
#include "gyre/model/stage.h"
#include "model/autograd.h"

namespace gyre {
namespace {

using testing_support::expect_equal_to_autograd;

constexpr int64_t kText = 11;  // tokenizer's vocabulary

BertConfig small(bool post_norm, bool order) {
  BertConfig config;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.context = 9;
  config.vocabulary = kText + SpecialTokens::kCount;
  config.kind = "bert";
  config.norm = post_norm ? "post" : "pre";
  config.sentence_order = order;
  return config;
}

// The same model written with operations that autograd understands.
at::Tensor reference_loss(const BertConfig& config, const std::vector<at::Tensor>& weights, const at::Tensor& tokens,
                          const at::Tensor& targets) {
  size_t next = 0;
  const auto take = [&] { return weights[next++]; };
  const auto norm = [&](const at::Tensor& x) {
    const at::Tensor w = take(), b = take();
    return (x - x.mean(-1, true)) / (x.var(-1, false, true) + 1e-12).sqrt() * w + b;
  };
  const auto affine = [&](const at::Tensor& x) {
    const at::Tensor w = take(), b = take();
    return at::matmul(x, w.t()) + b;
  };
  const int64_t batch = tokens.size(0), context = tokens.size(1), size = config.width / config.heads;
  const at::Tensor table = take(), positions = take(), types = take();
  // [CLS] and the first segment with its [SEP] have type 0; of an odd number of tokens it may have the larger half.
  const int64_t half = (context - kTokensAroundSegments) / 2;
  at::Tensor type = at::ones_like(tokens);
  for (int64_t s = 0; s < batch; ++s) {
    const bool is_larger = tokens[s][1 + half].item<int64_t>() != config.separator();
    for (int64_t t = 0; t < 2 + half + (is_larger ? 1 : 0); ++t) type[s][t] = 0;
  }
  const auto rows = [&](const at::Tensor& from, const at::Tensor& which) {
    return from.index_select(0, which.reshape({-1})).view({batch, context, config.width});
  };
  at::Tensor x = norm(rows(table, tokens) + positions.narrow(0, 0, context) + rows(types, type));
  const auto attention = [&](const at::Tensor& input) {
    const auto qkv = affine(input).split(config.width, -1);
    const auto heads = [&](const at::Tensor& t) {
      return t.view({batch, context, config.heads, size}).transpose(1, 2);
    };
    const at::Tensor scores =
        at::matmul(heads(qkv[0]), heads(qkv[1]).transpose(-1, -2)) / std::sqrt(static_cast<double>(size));
    return affine(
        at::matmul(at::softmax(scores, -1), heads(qkv[2])).transpose(1, 2).reshape({batch, context, config.width}));
  };
  for (int block = 0; block < config.layers; ++block) {
    // Parameters are in the order norm1, attention, norm2, mlp, whatever the order of use.
    const size_t first = next;
    const auto at_offset = [&](size_t offset, auto&& f) {
      next = first + offset;
      return f();
    };
    const auto norm1 = [&](const at::Tensor& v) { return at_offset(0, [&] { return norm(v); }); };
    const auto attend = [&](const at::Tensor& v) { return at_offset(2, [&] { return attention(v); }); };
    const auto norm2 = [&](const at::Tensor& v) { return at_offset(6, [&] { return norm(v); }); };
    const auto mlp = [&](const at::Tensor& v) {
      return at_offset(8, [&] { return affine(at::gelu(affine(v), "none")); });
    };
    if (config.post_norm()) {
      x = norm1(x + attend(x));
      x = norm2(x + mlp(x));
    } else {
      x = x + attend(norm1(x));
      x = x + mlp(norm2(x));
    }
    next = first + 12;
  }
  if (!config.post_norm()) x = norm(x);
  const at::Tensor transformed = norm(at::gelu(affine(x), "none"));
  const at::Tensor logits = config.tie ? at::matmul(transformed, table.t()) + weights[next++] : affine(transformed);
  at::Tensor wanted = targets.clone();
  wanted.select(1, 0).fill_(-1);
  at::Tensor loss = at::cross_entropy_loss(logits.reshape({-1, config.vocabulary}), wanted.reshape({-1}), {},
                                           at::Reduction::Mean, /*ignore_index=*/-1);
  if (config.sentence_order) {
    loss = loss + at::cross_entropy_loss(affine(at::tanh(affine(x.select(1, 0)))), targets.select(1, 0));
  }
  return loss;
}

// Made-up text: the tokens of sequence s in microbatch i count up.
class CountingText final : public BatchSource {
 public:
  CountingText(int64_t sequences, int64_t length) : sequences_(sequences), length_(length) {}
  Batch batch(int64_t index) const override {
    at::Tensor tokens = at::arange(sequences_ * length_, at::kLong).add(index * 5).remainder(kText);
    return {tokens.view({sequences_, length_}), at::Tensor()};
  }
  int64_t tokens_per_batch() const override { return sequences_ * length_; }

 private:
  int64_t sequences_, length_;
};

class BertLayers : public ::testing::TestWithParam<std::tuple<bool, bool, bool, at::ScalarType>> {};

TEST_P(BertLayers, EqualAutograd) {
  const auto& [post_norm, order, tie, type] = GetParam();
  BertConfig config = small(post_norm, order);
  config.tie = tie;
  const Stage stage(build_bert(config), 0);
  const Batch batch =
      MaskedBatches(std::make_unique<CountingText>(4, config.context - 3), SpecialTokens(kText), 1, order).batch(3);
  at::manual_seed(1);
  expect_equal_to_autograd(stage, batch.inputs, batch.targets, type, [&](const std::vector<at::Tensor>& weights) {
    return reference_loss(config, weights, batch.inputs, batch.targets);
  });
}

INSTANTIATE_TEST_SUITE_P(All, BertLayers,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Bool(),
                                            ::testing::Values(at::kDouble, at::kFloat)));

// A tokenizer's [SEP] also ends the documents of a text.
TEST_P(BertLayers, ASeparatorWithinTheTextEndsNoSegment) {
  const auto& [post_norm, order, tie, type] = GetParam();
  BertConfig config = small(post_norm, order);
  config.tie = tie;
  const Stage stage(build_bert(config), 0);
  Batch batch =
      MaskedBatches(std::make_unique<CountingText>(4, config.context - 3), SpecialTokens(kText), 1, order).batch(3);
  batch.inputs.select(1, 2).fill_(config.separator());
  at::manual_seed(1);
  expect_equal_to_autograd(stage, batch.inputs, batch.targets, type, [&](const std::vector<at::Tensor>& weights) {
    return reference_loss(config, weights, batch.inputs, batch.targets);
  });
}

TEST(Bert, SeesBothDirections) {
  const BertConfig config = small(true, false);
  const Stage stage(build_bert(config), 0);
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters()) weights.push_back(initial_value(spec, 1).mul(3));
  at::Tensor tokens = at::arange(9, at::kLong).view({1, 9});
  StageSaved saved;
  const at::NoGradGuard no_grad;
  const at::Tensor before = stage.forward(weights, tokens, {}, saved).clone();
  tokens[0][8] = 2;
  const at::Tensor after = stage.forward(weights, tokens, {}, saved);
  EXPECT_GT((before - after).select(1, 0).abs().max().item<double>(), 1e-6);
}

TEST(MaskedBatches, FollowTheRule) {
  const int64_t sequences = 50, content = 97;
  const MaskedBatches batches(std::make_unique<CountingText>(sequences, content), SpecialTokens(kText), 7, true);
  const CountingText text(sequences, content);
  const SpecialTokens special(kText);
  EXPECT_EQ(batches.tokens_per_batch(), sequences * (content + 3));
  int64_t asked = 0, masked = 0, kept = 0, exchanged = 0;
  std::vector<int64_t> places(100);
  for (int64_t index = 0; index < 40; ++index) {
    const Batch batch = batches.batch(index);
    const at::Tensor plain = text.batch(index).inputs;
    const Batch again = batches.batch(index);
    EXPECT_TRUE(batch.inputs.equal(again.inputs));
    EXPECT_TRUE(batch.targets.equal(again.targets));
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t* tokens = batch.inputs.data_ptr<int64_t>() + s * 100;
      const int64_t* targets = batch.targets.data_ptr<int64_t>() + s * 100;
      const int64_t* original = plain.data_ptr<int64_t>() + s * content;
      const int64_t order = targets[0];
      exchanged += order;
      const int64_t first = order == 0 ? 48 : 49;  // of 97 tokens, the first segment has 48
      EXPECT_EQ(tokens[0], special.classify);
      EXPECT_EQ(tokens[1 + first], special.separator);
      EXPECT_EQ(tokens[99], special.separator);
      int64_t in_sequence = 0;
      for (int64_t t = 1; t < 99; ++t) {
        if (t == 1 + first) continue;
        const int64_t place = t <= first ? t - 1 : t - 2;  // in the original text
        const int64_t source = order == 0 ? place : (place + 48) % 97;
        if (targets[t] < 0) {
          EXPECT_EQ(tokens[t], original[source]);
          continue;
        }
        EXPECT_EQ(targets[t], original[source]);
        ++in_sequence;
        ++places[t];
        masked += tokens[t] == special.mask;
        kept += tokens[t] == targets[t];
        EXPECT_TRUE(tokens[t] == special.mask || tokens[t] < kText);
      }
      EXPECT_EQ(in_sequence, 15);  // 15% of 97
      asked += in_sequence;
    }
  }
  const auto share = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(asked); };
  EXPECT_NEAR(share(masked), 0.8, 0.01);
  EXPECT_NEAR(share(kept), 0.1 + 0.1 / kText, 0.01);  // a random token may be the same
  EXPECT_NEAR(static_cast<double>(exchanged) / 2000, 0.5, 0.05);
  for (const int64_t t : {1, 30, 60, 98}) EXPECT_NEAR(static_cast<double>(places[t]) / 2000, 15.0 / 97, 0.04);
}

TEST(Bert, RefusesSizesThatDoNotFit) {
  BertConfig config = small(true, false);
  config.heads = 5;
  EXPECT_THROW(build_bert(config), InputError);
}

}  // namespace
}  // namespace gyre
