#include "gyre/model/gpt_embedding.h"

#include <tuple>

#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/dropout.h"
#include "gyre/model/sublayers/embedding.h"

namespace gyre {
namespace {

class GptEmbedding {
 public:
  struct Kept {
    Embedding::Kept tokens;
    LearnedPositions::Kept positions;
    Dropout::Kept dropout;
    auto members() const { return std::tie(tokens, positions, dropout); }
  };

  GptEmbedding(ParameterList& parameters, const ModelSettings& settings)
      : width_(static_cast<double>(settings.width)),
        tokens_(parameters, "token", settings.vocabulary, settings.width),
        positions_(parameters, "position", settings.context, settings.width),
        dropout_({settings.dropout, settings.width, 0}) {}

  // input: (batch, context) int64 tokens. Returns (batch, context, width).
  at::Tensor forward(const WeightView& weights, const at::Tensor& input, const LayerContext& context,
                     Kept& kept) const {
    at::Tensor x = tokens_.forward(weights, input, context, kept.tokens);
    positions_.add_to(x, weights, context);
    dropout_.apply(x, context, kept.dropout);
    return x;
  }
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad_output, Kept& kept) const {
    const at::Tensor grad = dropout_.backward_input(grad_output, kept.dropout);
    positions_.backward_input(grad, kept.positions);
    return tokens_.backward_input(weights, grad, kept.tokens);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    tokens_.backward_weights(kept.tokens, gradients);
    positions_.backward_weights(kept.positions, gradients);
  }
  double cost() const { return width_; }
  bool decodes() const { return true; }
  double kept_bytes(const MicrobatchShape& shape) const {
    return tokens_.kept_bytes(shape) + dropout_.kept_bytes(shape);
  }

 private:
  double width_;
  Embedding tokens_;
  LearnedPositions positions_;
  Dropout dropout_;
};

}  // namespace

std::shared_ptr<const Layer> make_gpt_embedding(const ModelSettings& settings) {
  return std::make_shared<LayerOf<GptEmbedding>>(LayerName("embedding"), settings);
}

}  // namespace gyre
