// Tests Layer::kept_bytes against the bytes that a microbatch really saves.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gyre/kernels/linear.h"
#include "gyre/model/stage.h"
#include "model/families.h"

namespace gyre {
namespace {

using namespace testing_support;

constexpr int64_t kSequences = 3, kContext = 43;

// Measures every layer by itself, so that memory that two layers share counts in both. keeps_weights: as with stashed
// weights, of which a layer needs no copies.
void expect_kept(const Layers& layers, at::ScalarType type, const std::string& what, bool is_masked,
                 bool keeps_weights) {
  const MicrobatchShape shape{kSequences, kContext, static_cast<double>(at::elementSize(type))};
  at::Tensor x = at::ones({kSequences, kContext}, at::kLong);
  for (size_t i = 0; i < layers.size(); ++i) {
    const Stage stage({layers[i]}, static_cast<int>(i));
    std::vector<at::Tensor> weights;
    for (const ParameterSpec& spec : stage.parameters()) weights.push_back(initial_value(spec, 1).to(type));
    LayerContext context;
    context.keeps_weights = keeps_weights;
    if (i + 1 == layers.size()) {
      context.targets = at::full({kSequences, kContext}, -1, at::kLong);
      // Masked batches ask for 15% of the tokens, without the special ones; other batches ask for all.
      context.targets.narrow(1, 2, 6).fill_(1);
      if (!is_masked) context.targets.fill_(1);
    }
    StageSaved saved;
    x = stage.forward(weights, x, context, saved);
    const auto kept = static_cast<double>(saved_bytes(saved));
    const double said = layers[i]->kept_bytes(shape);
    EXPECT_LE(said, kept) << what << ": " << layers[i]->name();
    EXPECT_GE(said, 0.97 * kept) << what << ": " << layers[i]->name();
  }
}

void expect_kept(const Layers& layers, at::ScalarType type, const std::string& what, bool is_masked = false) {
  for (const bool keeps_weights : {false, true}) {
    expect_kept(layers, type, fmt::format("{}, keeps weights {}", what, keeps_weights), is_masked, keeps_weights);
  }
}

TEST(KeptBytes, OfGpt) {
  for (const double dropout : {0.0, 0.1}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      ModelSettings config = tiny_gpt();
      config.dropout = dropout;
      expect_kept(build_gpt(config), type, fmt::format("gpt, dropout {}, {}", dropout, at::toString(type)));
    }
  }
}

TEST(KeptBytes, OfBert) {
  for (const double dropout : {0.0, 0.1}) {
    for (const bool post_norm : {false, true}) {
      BertConfig config = tiny_bert();
      config.dropout = dropout;
      config.norm = post_norm ? "post" : "pre";
      const std::string what = fmt::format("bert, dropout {}, post-norm {}", dropout, post_norm);
      expect_kept(build_bert(config), at::kFloat, what, true);
    }
  }
}

TEST(KeptBytes, OfLlama) {
  LlamaConfig config = tiny_llama();
  config.context = kContext;
  for (const auto type : {at::kFloat, at::kBFloat16}) expect_kept(build_llama(config), type, "llama");
}

// The two numbers per row of attention's softmax are those of the CPU's products in bf16.
TEST(KeptBytes, OnADeviceDoNotDependOnTheCpu) {
  const Layers layers = build_gpt(tiny_gpt());
  MicrobatchShape shape{kSequences, kContext, 2};
  const double on_host = layers[1]->kept_bytes(shape);
  shape.on_host = false;
  const double of_softmax = has_fast_bf16_products() ? shape.tokens() * static_cast<double>(tiny_gpt().heads) * 8 : 0;
  EXPECT_EQ(on_host - layers[1]->kept_bytes(shape), of_softmax);
}

TEST(KeptBytes, OfSizesThatFitNoInteger) {
  ModelSettings config;
  config.layers = 1;
  config.width = 1 << 20;
  config.heads = 1 << 20;
  config.context = 1 << 24;
  config.vocabulary = 1 << 30;
  config.mlp_width = 1 << 24;
  const Layers layers = build_gpt(config);
  EXPECT_GT(layers[1]->kept_bytes({0x1p20, 0x1p24, 4}), 0x1p67) << "queries, keys and values alone";
}

}  // namespace
}  // namespace gyre
