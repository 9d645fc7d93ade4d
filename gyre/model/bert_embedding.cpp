// The first layer of a BERT: the sum of token, position and token-type embeddings, then norm and dropout.
#include <ATen/ATen.h>

#include <tuple>

#include "gyre/model/bert_layers.h"
#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/dropout.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/sublayers/norm.h"

namespace gyre {
namespace {

class BertEmbedding {
 public:
  struct Kept {
    Embedding::Kept tokens;
    LearnedPositions::Kept positions;
    Embedding::Kept types;
    Norm::Kept norm;
    Dropout::Kept dropout;
    auto members() const { return std::tie(tokens, positions, types, norm, dropout); }
  };

  BertEmbedding(ParameterList& parameters, const BertConfig& config)
      : separator_(config.separator()),
        width_(static_cast<double>(config.width)),
        tokens_(parameters, "token", config.vocabulary, config.width),
        positions_(parameters, "position", config.context, config.width),
        types_(parameters, "type", 2, config.width),
        norm_(parameters, "norm", {NormKind::LayerNorm, config.width, true, kBertNormEpsilon}),
        dropout_({config.dropout, config.width, 0}) {}

  // input: (batch, context) int64 tokens. Returns (batch, context, width).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Kept& kept) const {
    at::Tensor x = tokens_.forward(weights, input, context, kept.tokens);
    positions_.add_to(x, weights, context);
    x.add_(types_.forward(weights, types_of(input), context, kept.types));
    x = norm_.forward(weights, x, context, kept.norm);
    dropout_.apply(x, context, kept.dropout);
    return x;
  }
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Kept& kept) const {
    const at::Tensor grad =
        norm_.backward_input(weights, dropout_.backward_input(grad_output, kept.dropout), kept.norm);
    positions_.backward_input(grad, kept.positions);
    types_.backward_input(weights, grad, kept.types);
    return tokens_.backward_input(weights, grad, kept.tokens);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    tokens_.backward_weights(kept.tokens, gradients);
    positions_.backward_weights(kept.positions, gradients);
    types_.backward_weights(kept.types, gradients);
    norm_.backward_weights(kept.norm, gradients);
  }
  double cost() const { return width_; }
  double kept_bytes(const MicrobatchShape& shape) const {
    return tokens_.kept_bytes(shape) + types_.kept_bytes(shape) + norm_.kept_bytes(shape) + dropout_.kept_bytes(shape);
  }

 private:
  // Token types: 0 up to and including the separator between the segments, 1 after it. Same shape as `tokens`. The
  // separator is known by its place, since the text may have the same token where its documents end. Where the text has
  // an odd number of tokens, the first segment may have one more than half of them.
  at::Tensor types_of(const at::Tensor& tokens) const {
    const int64_t middle = 1 + (tokens.size(1) - kTokensAroundSegments) / 2;
    const at::Tensor end = tokens.narrow(1, middle, 1).ne(separator_).to(at::kLong).add_(middle);  // (batch, 1)
    return at::arange(tokens.size(1), tokens.options()).unsqueeze(0).gt(end).to(at::kLong);
  }

  int64_t separator_;
  double width_;
  Embedding tokens_;
  LearnedPositions positions_;
  Embedding types_;
  Norm norm_;
  Dropout dropout_;
};

}  // namespace

std::shared_ptr<const Layer> make_bert_embedding(const BertConfig& config) {
  return std::make_shared<LayerOf<BertEmbedding>>(LayerName("embedding"), config);
}

}  // namespace gyre
