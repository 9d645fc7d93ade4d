// A model gives the same logits with a cache of keys and values as without.
#include "gyre/inspect/decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "gyre/core/random.h"
#include "gyre/inspect/sampling.h"
#include "gyre/kernels/linear.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;

constexpr int64_t kContext = 16;

ModelSettings gpt() {
  ModelSettings settings = tiny_gpt();
  settings.layers = 3;
  settings.context = kContext;
  return settings;
}

LlamaConfig llama() {
  LlamaConfig config = tiny_llama();
  config.vocabulary = 50;
  config.context = kContext;
  return config;
}

std::vector<at::Tensor> weights_of(const Stage& stage, at::ScalarType type) {
  std::vector<at::Tensor> weights;
  for (const ParameterSpec& spec : stage.parameters()) {
    // Larger than initial ones, so that attention is far from uniform.
    const at::Tensor value = initial_value(spec, 7);
    weights.push_back((spec.shape.size() == 2 ? value * 12 : value).to(type));
  }
  return weights;
}

std::vector<int32_t> some_tokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>((i * i * 7 + 3 * i) % 50));
  return tokens;
}

// Largest difference between logits with and without a cache, while a context fills from a prompt of `prompt` tokens.
double largest_difference(const Layers& layers, at::ScalarType type, int64_t prompt) {
  const Stage stage(layers, 0);
  const auto weights = weights_of(stage, type);
  Decoder with(stage, weights, kContext), without(stage, weights, kContext, /*caches=*/false);
  const auto tokens = some_tokens(kContext);
  std::span<const int32_t> next(tokens.data(), static_cast<size_t>(prompt));
  double largest = 0;
  for (int64_t read = prompt;; ++read) {
    const at::Tensor a = with.read(next), b = without.read(next);
    EXPECT_EQ(a.sizes(), (at::IntArrayRef{50}));
    largest = std::max(largest, (a - b).abs().max().item<double>() / b.abs().max().item<double>());
    if (read == kContext) return largest;
    next = {tokens.data() + read, 1};
  }
}

TEST(Decoder, WithACacheLogitsAreThoseWithout) {
  for (const int64_t prompt : {1, 5, 16}) {
    for (const Layers& layers : {build_gpt(gpt()), build_llama(llama())}) {
      EXPECT_LT(largest_difference(layers, at::kFloat, prompt), 1e-5) << "prompt of " << prompt;
      // Where products are libtorch's, one row's sums are added up in another order than those of many rows.
      EXPECT_LE(largest_difference(layers, at::kBFloat16, prompt), has_fast_bf16_products() ? 0 : 5e-2) << prompt;
    }
  }
}

// Also with libtorch's products the cache's logits are no further from those of fp32.
TEST(Decoder, InBf16TheCacheCostsNoAccuracy) {
  const Stage stage(build_gpt(gpt()), 0);
  const auto weights = weights_of(stage, at::kBFloat16);
  std::vector<at::Tensor> exact;
  for (const at::Tensor& weight : weights) exact.push_back(weight.to(at::kFloat));
  Decoder with(stage, weights, kContext), without(stage, weights, kContext, false), fp32(stage, exact, kContext);
  double error_with = 0, error_without = 0;
  for (const int32_t token : some_tokens(kContext)) {
    const at::Tensor right = fp32.read({&token, 1});
    error_with += (with.read({&token, 1}) - right).square().mean().item<double>();
    error_without += (without.read({&token, 1}) - right).square().mean().item<double>();
  }
  EXPECT_LT(error_with, 1.5 * error_without);
}

TEST(Decoder, BeginsAgainWithTheLastHalfOfAFullContext) {
  const Stage stage(build_gpt(gpt()), 0);
  const auto weights = weights_of(stage, at::kFloat);
  const auto tokens = some_tokens(3 * kContext);
  Decoder with(stage, weights, kContext);
  with.read({tokens.data(), kContext});
  size_t seen = kContext;
  for (size_t next = kContext; next < tokens.size(); ++next) {
    seen = seen == kContext ? kContext / 2 : seen + 1;
    Decoder fresh(stage, weights, kContext, false);
    const at::Tensor expected = fresh.read({tokens.data() + next + 1 - seen, seen});
    const at::Tensor logits = with.read({tokens.data() + next, 1});
    ASSERT_TRUE(at::allclose(logits, expected, 1e-4, 1e-5)) << "token " << next;
  }
}

TEST(Decoder, OfALongPromptTheLastTokensAreSeen) {
  const Stage stage(build_gpt(gpt()), 0);
  const auto weights = weights_of(stage, at::kFloat);
  const auto tokens = some_tokens(kContext + 9);
  for (const bool caches : {true, false}) {
    Decoder all(stage, weights, kContext, caches), last(stage, weights, kContext, caches);
    EXPECT_TRUE(all.read(tokens).equal(last.read({tokens.data() + 9, kContext})));
  }
}

// Layers that do not support decoding are given all tokens each time.
TEST(Decoder, AModelThatCannotGoOnIsReadAnew) {
  class Opaque final : public Layer {
   public:
    const std::string& name() const override { return name_; }
    std::vector<ParameterSpec> parameters() const override { return {}; }
    at::Tensor forward(const WeightView&, const at::Tensor& input, const LayerContext& context, Saved&) const override {
      EXPECT_EQ(context.decoding, nullptr);
      return at::one_hot(input.cumsum(1) % 50, 50);
    }
    at::Tensor backward_input(const WeightView&, const at::Tensor&, Saved&) const override { return {}; }
    void backward_weights(Saved&, const GradientSums&) const override {}
    double cost(int64_t) const override { return 0; }
    std::string name_ = "opaque";
  };
  const Stage stage({std::make_shared<Opaque>()}, 0);
  Decoder decoder(stage, {}, kContext);
  int64_t sum = 0;
  for (const int32_t token : some_tokens(kContext)) {
    sum += token;
    EXPECT_EQ(decoder.read({&token, 1}).argmax().item<int64_t>(), sum % 50);
  }
}

// How often each token is drawn.
std::vector<int> drawn(const std::vector<float>& probabilities, const SamplingOptions& options, int draws) {
  const at::Tensor logits = at::tensor(probabilities).log();
  std::vector<int> counts(probabilities.size());
  for (int i = 0; i < draws; ++i) {
    RandomStream stream(3, StreamPurpose::Sampling, static_cast<uint64_t>(i));
    ++counts[static_cast<size_t>(sample(logits, options, stream))];
  }
  return counts;
}

// A model that has diverged has nothing to draw from; a token of logit -inf is never drawn.
TEST(Sampling, RefusesLogitsThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& bad :
       {std::vector{1.0F, kNan, 2.0F}, {1.0F, kInfinity, 2.0F}, {-kInfinity, -kInfinity}}) {
    for (const SamplingOptions& options :
         {SamplingOptions{}, {.temperature = 0}, {.temperature = 1, .top_k = 2}, {.temperature = 1, .top_p = 0.9}}) {
      RandomStream stream(3, StreamPurpose::Sampling, 0);
      EXPECT_THROW(sample(at::tensor(bad), options, stream), Divergence);
    }
  }
  RandomStream stream(3, StreamPurpose::Sampling, 0);
  EXPECT_EQ(sample(at::tensor({-kInfinity, 0.5F, -kInfinity}), {.temperature = 1, .top_p = 0.9}, stream), 1);
}

TEST(Sampling, DrawsByProbability) {
  const std::vector<float> probabilities = {0.1F, 0.4F, 0.05F, 0.25F, 0.2F};
  const auto within = [&](const SamplingOptions& options, const std::vector<double>& expected) {
    const auto counts = drawn(probabilities, options, 4000);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(counts[i] / 4000.0, expected[i], expected[i] == 0 ? 0 : 0.03) << "token " << i;
    }
  };
  within({.temperature = 1}, {0.1, 0.4, 0.05, 0.25, 0.2});
  within({.temperature = 1, .top_k = 2}, {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
  within({.temperature = 1, .top_p = 0.6}, {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});  // 0.4 is too little
  within({.temperature = 1, .top_p = 0.3}, {0, 1, 0, 0, 0});
  within({.temperature = 1, .top_p = 0}, {0, 1, 0, 0, 0});
  within({.temperature = 1, .top_k = 3, .top_p = 0.7}, {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});  // of 0.85
  within({.temperature = 0}, {0, 1, 0, 0, 0});
  within({.temperature = 0.5}, {0.01 / 0.275, 0.16 / 0.275, 0.0025 / 0.275, 0.0625 / 0.275, 0.04 / 0.275});
}

// A vocabulary larger than what is sorted at first.
TEST(Sampling, OfManyTokensTheLikeliestAreFound) {
  std::vector<float> probabilities(1000);
  for (size_t i = 0; i < probabilities.size(); ++i) probabilities[i] = static_cast<float>(1 + (i * 617) % 1000);
  const auto of_k = drawn(probabilities, {.temperature = 1, .top_k = 300}, 3000);
  const auto of_p = drawn(probabilities, {.temperature = 1, .top_p = 0.509}, 3000);  // 300 of 1000 have 0.5098
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] > 700) continue;
    EXPECT_EQ(of_k[i], 0) << i;
    EXPECT_EQ(of_p[i], 0) << i;
  }
  const auto count = [](const std::vector<int>& counts) {
    return std::count_if(counts.begin(), counts.end(), [](int n) { return n > 0; });
  };
  EXPECT_GT(count(of_k), 290);
  EXPECT_GT(count(of_p), 290);
}

}  // namespace
}  // namespace gyre
