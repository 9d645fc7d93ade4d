// Tests kernels against ATen, also for awkward sizes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/attention_of_one.h"
#include "gyre/kernels/attention_softmax.h"
#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/cross_entropy.h"
#include "gyre/kernels/dropout.h"
#include "gyre/kernels/embedding.h"
#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/linear.h"
#include "gyre/kernels/rms_norm.h"

namespace gyre {
namespace {

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / (b.to(at::kDouble).norm() + 1e-30)).item<double>();
}

TEST(CpuMath, Bf16RoundsAsATen) {
  at::manual_seed(1);
  const at::Tensor values = at::randn({10000}) * at::exp2(at::randn({10000}) * 10);
  const at::Tensor expected = values.to(at::kBFloat16);
  for (int64_t i = 0; i < values.numel(); ++i) {
    c10::BFloat16 rounded;
    cpu::store(&rounded, values.data_ptr<float>()[i]);
    ASSERT_EQ(rounded.x, expected.data_ptr<c10::BFloat16>()[i].x);
    ASSERT_EQ(cpu::load(&rounded), static_cast<float>(rounded));
  }
}

TEST(CpuMath, TwoAreReadAndRoundedAsOneByOne) {
  at::manual_seed(2);
  const at::Tensor values = at::randn({2, 1000});
  const auto* first = values.data_ptr<float>();
  for (const float *a = first, *b = a + 1000; a < first + 1000; ++a, ++b) {
    std::array<c10::BFloat16, 2> one_by_one, together;
    cpu::store(one_by_one.data(), *a);
    cpu::store(&one_by_one[1], *b);
    cpu::store_two(together.data(), {*a, *b});
    ASSERT_EQ(together[0].x, one_by_one[0].x);
    ASSERT_EQ(together[1].x, one_by_one[1].x);
    const cpu::Two back = cpu::load_two(together.data());
    ASSERT_EQ(back.first, cpu::load(together.data()));
    ASSERT_EQ(back.second, cpu::load(&together[1]));
  }
}

TEST(CpuMath, ExponentialIsAccurate) {
  for (float x = 0; x > -87; x -= 0.00371f) {
    EXPECT_NEAR(cpu::exp_negative(x) / std::exp(double{x}), 1.0, 4e-7) << x;
  }
  EXPECT_LT(cpu::exp_negative(-1000), 2e-38f);
  for (float x = 0; x > -125; x -= 0.00371f) {
    EXPECT_NEAR(cpu::exp2_negative(x) / std::exp2(double{x}), 1.0, 3e-7) << x;
  }
  EXPECT_LT(cpu::exp2_negative(-1000), 3e-38f);
}

TEST(LayerNorm, EqualsATen) {
  at::manual_seed(1);
  for (const int64_t width : {1, 7, 16, 33, 256}) {
    const at::Tensor x = at::randn({4, 3, width}) * 3 + 1, grad = at::randn({4, 3, width});
    const at::Tensor weight = at::randn({width}), bias = at::randn({width});
    const auto [y, mean, deviation] = at::native_layer_norm(x, {width}, weight, bias, 1e-5);
    const auto [dx, dw, db] =
        at::native_layer_norm_backward(grad, x, {width}, mean, deviation, weight, bias, {true, true, true});
    const auto ours = layer_norm(x, weight, bias, 1e-5);
    const auto back = layer_norm_backward(grad, x, ours.mean, ours.rstd, weight);
    EXPECT_LT(relative_error(ours.output, y), 2e-5);  // at width 1 the result is only rounding error
    if (width > 1) {
      EXPECT_LT(relative_error(back.input, dx), 1e-5);
    }
    EXPECT_LT((back.weight - dw).abs().max().item<double>(), 1e-4);
    EXPECT_LT(relative_error(back.bias, db), 1e-6);

    const auto rounded = layer_norm(x.to(at::kBFloat16), weight.to(at::kBFloat16), bias.to(at::kBFloat16), 1e-5);
    EXPECT_EQ(rounded.output.scalar_type(), at::kBFloat16);
    EXPECT_EQ(rounded.mean.scalar_type(), at::kFloat);
    if (width > 1) {
      EXPECT_LT(relative_error(rounded.output, y), 0.02);
    }
  }
}

TEST(Norms, OutputsMadeAgainAreTheSameBits) {
  at::manual_seed(2);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {  // the last uses the portable path
    for (const int64_t width : {1, 7, 40, 384}) {
      const at::Tensor x = (at::randn({4, 3, width}) * 3 + 1).to(type);
      const at::Tensor weight = at::randn({width}).to(type);
      for (const at::Tensor& bias : {at::Tensor(), at::randn({width}).to(type)}) {
        const auto norm = layer_norm(x, weight, bias, 1e-5);
        EXPECT_TRUE(norm.output.equal(layer_norm_output(x, norm.mean, norm.rstd, weight, bias))) << width;
      }
      const auto norm = rms_norm(x, weight, 1e-5);
      EXPECT_TRUE(norm.output.equal(rms_norm_output(x, norm.rstd, weight))) << width;
    }
  }
}

// For bf16 matrices (n, rows, keys): the softmax, then the backward, which recomputes it from the scores, and the
// gradients of the scores.
struct SoftmaxResults {
  at::Tensor forward, again, gradients;
};
SoftmaxResults softmax_of(const at::Tensor& scores, const at::Tensor& grad, double scale, bool causal) {
  const int64_t n = scores.size(0), rows = scores.size(1), keys = scores.size(2), guards = 64;
  const auto guarded = [&](const at::Tensor& x) {
    return at::cat({x.to(at::kBFloat16).flatten(), at::full({guards}, 7, at::kBFloat16)});
  };
  std::vector<at::Tensor> results = {guarded(scores), guarded(scores), guarded(grad)};
  std::vector<float> scratch(static_cast<size_t>(cpu::whole_lanes(keys)));
  std::vector<cpu::SoftmaxRow> of_rows(static_cast<size_t>(rows));
  for (int64_t i = 0; i < n; ++i) {
    const auto at = [&](const at::Tensor& x) { return x.data_ptr<c10::BFloat16>() + i * rows * keys; };
    cpu::attention_softmax(at(results[0]), scratch.data(), of_rows.data(), rows, keys, scale, causal);
    cpu::attention_softmax_backward(at(results[2]), at(results[1]), of_rows.data(), rows, keys, scale, causal);
  }
  for (at::Tensor& result : results) {
    EXPECT_TRUE(result.narrow(0, scores.numel(), guards).eq(7).all().item<bool>()) << "written behind the end";
    result = result.narrow(0, 0, scores.numel()).view(scores.sizes());
  }
  return {results[0], results[1], results[2]};
}

TEST(AttentionSoftmax, EqualsATen) {
  at::manual_seed(1);
  for (const int64_t context : {1, 5, 16, 47, 64, 100}) {
    for (const double scale : {1.0, 0.25}) {
      for (const bool causal : {true, false}) {
        const at::Tensor scores = (at::randn({3, context, context}) * 4).to(at::kBFloat16),
                         grad = at::randn({3, context, context}).to(at::kBFloat16);
        // The portable path, in fp64, is the reference.
        at::Tensor expected = scores.to(at::kDouble), expected_grad = grad.to(at::kDouble);
        portable::attention_softmax_in_place(expected, scale, causal);
        at::Tensor visible = scores.to(at::kDouble) * scale;
        if (causal) visible = visible.masked_fill(at::ones({context, context}, at::kBool).triu(1), -INFINITY);
        EXPECT_LT(relative_error(expected, at::softmax(visible, -1)), 1e-6);
        portable::attention_softmax_backward_in_place(expected_grad, expected, scale, causal);

        const SoftmaxResults ours = softmax_of(scores, grad, scale, causal);
        EXPECT_LT(relative_error(ours.forward, expected), 4e-3);
        EXPECT_TRUE(ours.again.equal(ours.forward)) << "not the same bits";
        EXPECT_LT((ours.gradients.to(at::kDouble) - expected_grad).abs().max().item<double>(), 1.2e-2);
        if (causal) {
          EXPECT_EQ(ours.forward.triu(1).abs().sum().item<double>(), 0);
          EXPECT_EQ(ours.gradients.triu(1).abs().sum().item<double>(), 0);
        }
      }
    }
  }
}

// The last rows of a matrix give the same result alone as in the whole matrix.
TEST(AttentionSoftmax, OfTheLastRowsIsThatOfAll) {
  at::manual_seed(2);
  const at::Tensor scores = at::randn({3, 70, 70}), grad = at::randn({3, 70, 70});
  const auto last_of = [](const at::Tensor& x) { return x.narrow(1, 53, 17); };
  const SoftmaxResults all = softmax_of(scores, grad, 0.5, true);
  const SoftmaxResults last = softmax_of(last_of(scores), last_of(grad), 0.5, true);
  EXPECT_TRUE(last.forward.equal(last_of(all.forward)));
  EXPECT_TRUE(last.gradients.equal(last_of(all.gradients)));
  for (const auto type : {at::kFloat, at::kDouble}) {
    at::Tensor whole = scores.to(type).clone(), part = last_of(whole).contiguous();
    attention_softmax_in_place(whole, 0.5, true);
    attention_softmax_in_place(part, 0.5, true);
    EXPECT_TRUE(part.equal(last_of(whole)));
  }
}

// Contexts shorter than a block of queries, of exactly one block, and of several blocks, of which the last is short.
TEST(Attention, ByBlocksIsThatOfTheWhole) {
  at::manual_seed(3);
  for (const int64_t context : {7, 128, 300}) {
    for (const AttentionHeads heads : {AttentionHeads{4, 4}, AttentionHeads{4, 2}}) {
      for (const bool causal : {true, false}) {
        const int64_t size = 8, group = heads.query / heads.key_value;
        const at::Tensor qkv = at::randn({2, context, (heads.query + 2 * heads.key_value) * size}) * 2;
        const at::Tensor grad = at::randn({2, context, heads.query * size});
        const HeadTensors of = split_heads(qkv, heads);
        // The reference, in fp64, by the formula of softmax's backward: dS = P (dP - sum(dP P)).
        const auto by_head = [&](const at::Tensor& x, int64_t repeats) {
          return x.flatten(0, 1).to(at::kDouble).repeat_interleave(repeats, 0);
        };
        const at::Tensor q = by_head(of.query, 1), k = by_head(of.key, group), v = by_head(of.value, group);
        at::Tensor scores = q.bmm(k.transpose(1, 2)) / std::sqrt(8.0);
        if (causal) scores.masked_fill_(at::ones({context, context}, at::kBool).triu(1), -INFINITY);
        const at::Tensor p = at::softmax(scores, -1);
        const at::Tensor g =
            grad.to(at::kDouble).view({2, context, heads.query, size}).transpose(1, 2).reshape(q.sizes());
        const at::Tensor dp = g.bmm(v.transpose(1, 2));
        const at::Tensor ds = p * (dp - (dp * p).sum(-1, true)) / std::sqrt(8.0);
        const auto shared = [&](const at::Tensor& x) {
          return x.view({2, heads.key_value, group, context, size}).sum(2);
        };
        const auto of_query = [&](const at::Tensor& x) { return x.view(of.query.sizes()); };
        const at::Tensor output = p.bmm(v).view({2, heads.query, context, size}).transpose(1, 2).reshape(grad.sizes());

        const Attended attended = attention(of, causal);
        EXPECT_LT(relative_error(attended.output, output), 1e-5);
        const HeadTensors ours = split_heads(attention_backward(grad, of, attended, causal), heads);
        EXPECT_LT(relative_error(ours.query, of_query(ds.bmm(k))), 1e-5);
        EXPECT_LT(relative_error(ours.key, shared(ds.transpose(1, 2).bmm(q))), 1e-5);
        EXPECT_LT(relative_error(ours.value, shared(p.transpose(1, 2).bmm(g))), 1e-5);
        const HeadTensors half = {of.query.to(at::kBFloat16), of.key.to(at::kBFloat16), of.value.to(at::kBFloat16)};
        const Attended of_half = attention(half, causal);
        EXPECT_LT(relative_error(of_half.output, output), 2e-2);
        const HeadTensors rounded =
            split_heads(attention_backward(grad.to(at::kBFloat16), half, of_half, causal), heads);
        EXPECT_LT(relative_error(rounded.query, of_query(ds.bmm(k))), 4e-2);
        EXPECT_LT(relative_error(rounded.key, shared(ds.transpose(1, 2).bmm(q))), 4e-2);
        EXPECT_LT(relative_error(rounded.value, shared(p.transpose(1, 2).bmm(g))), 4e-2);
      }
    }
  }
}

// A text of 1 to 300 tokens, one after the other, with a cache of 290 positions and then of 300: heads that share keys
// or not, and of several sizes. What is beyond the text has no effect.
TEST(Attention, OfOneIsTheLastRowOfAll) {
  at::manual_seed(5);
  for (const auto& [query_heads, key_value_heads, size] : {std::array{3, 3, 8}, {6, 2, 20}, {4, 1, 64}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor qkv = at::randn({2, 300, (query_heads + 2 * key_value_heads) * size}).to(type) * 2;
      const HeadTensors all = split_heads(qkv, {query_heads, key_value_heads});
      for (const int64_t seen : {1, 2, 31, 127, 128, 129, 200, 256, 290, 300}) {
        const HeadTensors text = {all.query.narrow(2, 0, seen), all.key.narrow(2, 0, seen),
                                  all.value.narrow(2, 0, seen)};
        const at::Tensor expected = attention(text, /*causal=*/true).output.narrow(1, seen - 1, 1);
        const int64_t capacity = std::max<int64_t>(seen, 290);
        const at::Tensor keys = all.key.narrow(2, 0, capacity).clone(at::MemoryFormat::Contiguous),
                         values = all.value.narrow(2, 0, capacity).clone(at::MemoryFormat::Contiguous);
        keys.narrow(2, seen, capacity - seen).fill_(NAN);
        values.narrow(2, seen, capacity - seen).fill_(NAN);
        const at::Tensor one = attention_of_one({all.query.narrow(2, seen - 1, 1), keys, values}, seen);
        ASSERT_EQ(one.sizes(), expected.sizes());
        if (type == at::kBFloat16 && has_fast_bf16_products()) {
          EXPECT_TRUE(one.equal(expected)) << seen << " positions of size " << size;
        } else {
          EXPECT_LT(relative_error(one, expected), type == at::kFloat ? 1e-5 : 2e-2);
        }
      }
    }
  }
}

// Gradients and inputs come in any layout; the results are those of contiguous ones, bit for bit.
TEST(Activation, BackwardReadsPermutedTensors) {
  at::manual_seed(4);
  const auto permuted = [](const at::Tensor& x) { return x.transpose(0, 1).contiguous().transpose(0, 1); };
  const auto is_same = [](const ActivationBackward& a, const ActivationBackward& b) {
    return a.grad.equal(b.grad) && a.output.equal(b.output);
  };
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const auto function : {Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu}) {
      const at::Tensor x = at::randn({20, 5, 6}).to(type), grad = at::randn({20, 5, 6}).to(type);
      const at::Tensor half = at::randn({20, 5, 3}).to(type);
      const ActivationBackward plain = activate_backward(grad, x, function);
      EXPECT_TRUE(is_same(activate_backward(permuted(grad), x, function), plain));
      EXPECT_TRUE(is_same(activate_backward(grad, permuted(x), function), plain));
      const ActivationBackward gated = gated_activate_backward(half, x, function);
      EXPECT_TRUE(is_same(gated_activate_backward(permuted(half), x, function), gated));
      EXPECT_TRUE(is_same(gated_activate_backward(half, permuted(x), function), gated));
    }
  }
}

TEST(CrossEntropy, EqualsATenAtGpt2sVocabulary) {
  at::manual_seed(1);
  for (const auto& [rows, vocabulary] : {std::pair<int64_t, int64_t>{40, 50257}, {3000, 256}, {1, 2}}) {
    const at::Tensor logits = at::randn({rows, vocabulary}) * 3;
    const at::Tensor targets = at::randint(vocabulary, {rows}, at::kLong);
    const at::Tensor expected = at::cross_entropy_loss(logits, targets);
    at::Tensor gradient = at::softmax(logits, 1);
    gradient.scatter_add_(1, targets.unsqueeze(1), at::full({rows, 1}, -1.0));
    gradient.mul_(0.3);
    at::Tensor ours = logits.clone();
    const auto of_all = static_cast<double>(rows);
    EXPECT_NEAR(cross_entropy_in_place(ours, targets, 0.3).item<double>() / of_all, expected.item<double>(), 1e-4);
    EXPECT_LT(relative_error(ours, gradient), 1e-5);
    at::Tensor rounded = logits.to(at::kBFloat16);
    EXPECT_NEAR(cross_entropy_in_place(rounded, targets, 0.3).item<double>() / of_all, expected.item<double>(), 0.02);
  }
}

TEST(Embedding, GradientsOfRepeatedTokensAdd) {
  at::manual_seed(1);
  const at::Tensor tokens = at::randint(5, {4, 9}, at::kLong), grad = at::randn({4, 9, 6});
  at::Tensor expected = at::ones({5, 6}, at::kDouble);
  expected.index_add_(0, tokens.view({-1}), grad.view({-1, 6}).to(at::kDouble));
  at::Tensor ours = at::ones({5, 6});
  embed_backward(grad, tokens, ours);
  EXPECT_LT(relative_error(ours, expected), 1e-6);
  at::Tensor from_bf16 = at::ones({5, 6});
  embed_backward(grad.to(at::kBFloat16), tokens, from_bf16);
  EXPECT_LT(relative_error(from_bf16, expected), 1e-2);
  at::Tensor wide = at::ones({5, 6}, at::kDouble);
  embed_backward(grad.to(at::kDouble), tokens, wide);
  EXPECT_LT(relative_error(wide, expected), 1e-12);
}

TEST(Dropout, MaskIsOfTheStreamAndOfTheRightDensity) {
  const at::Tensor x = at::empty({100, 1003});
  const RandomStream stream(1, StreamPurpose::Dropout, 5, 3);
  const at::Tensor mask = dropout_mask(x, 0.2, stream);
  EXPECT_TRUE(mask.equal(dropout_mask(x, 0.2, stream)));
  EXPECT_FALSE(mask.equal(dropout_mask(x, 0.2, RandomStream(1, StreamPurpose::Dropout, 6, 3))));
  EXPECT_NEAR(mask.logical_not().to(at::kDouble).mean().item<double>(), 0.2, 0.005);
}

TEST(Dropout, MaskIsThatOfTheWordsOneByOne) {
  const RandomStream stream(1, StreamPurpose::Dropout, (uint64_t{1} << 33) + 5, 3);
  for (const int64_t count : {1, 4, 63, 64, 65, 1003}) {
    const at::Tensor mask = dropout_mask(at::empty({count}), 0.2, stream);
    RandomStream words = stream;
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(mask.data_ptr<bool>()[i], words.next_u32() >= dropout_threshold(0.2)) << i << " of " << count;
    }
  }
}

// 1 / (1 - 0.1) is not a bf16 number.
TEST(Dropout, KeepsTheMean) {
  const RandomStream stream(1, StreamPurpose::Dropout, 5, 3);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::rand({1000, 1000}).to(type), mask = dropout_mask(x, 0.1, stream);
    at::Tensor kept = at::empty_like(x);
    apply_dropout(x, mask, 0.1, kept);
    const auto sum_of = [&](const at::Tensor& values) { return (values.to(at::kDouble) * mask).sum().item<double>(); };
    EXPECT_NEAR(sum_of(kept) / sum_of(x), 1 / 0.9, 5e-5);
  }
}

}  // namespace
}  // namespace gyre
