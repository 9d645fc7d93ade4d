// Embeddings: rows of a table, chosen by tokens or by positions.
#pragma once

#include <string>
#include <tuple>

#include "gyre/model/sublayers/parameters.h"
#include "gyre/model/sublayers/sublayer.h"

namespace gyre {

// Full name of the table of token embeddings in all our model families. A tied output matrix refers to it.
inline constexpr const char* kTokenTable = "embedding.token.weight";

// Token embedding: output row i is the table's row of token i. The input (tokens) has no gradient.
class Embedding {
 public:
  struct Kept {
    at::Tensor tokens;       // (batch, context) int64
    at::Tensor grad_output;  // set by backward_input for backward_weights
    auto members() const { return std::tie(tokens, grad_output); }
  };

  // Declares NAME.weight.
  Embedding(ParameterList& parameters, const std::string& name, int64_t vocabulary, int64_t width);

  // tokens: (batch, context) int64. Returns (batch, context, width).
  at::Tensor forward(const WeightView& weights, const at::Tensor& tokens, const LayerContext& context,
                     Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  double cost() const { return 0; }
  bool decodes() const { return true; }
  double kept_bytes(const MicrobatchShape& shape) const { return shape.tokens() * 8; }

 private:
  size_t table_;
};
static_assert(Sublayer<Embedding>);

// Adds a table row to every position: x + table[0 .. context). When decoding, positions count from the tokens already
// read.
class LearnedPositions {
 public:
  struct Kept {
    at::Tensor grad_output;  // set by backward_input for backward_weights
    auto members() const { return std::tie(grad_output); }
  };

  // Declares NAME.weight.
  LearnedPositions(ParameterList& parameters, const std::string& name, int64_t context, int64_t width);

  // x: (batch, context, width), changed in place.
  void add_to(at::Tensor& x, const WeightView& weights, const LayerContext& context) const;
  // The gradient with respect to x is `grad` itself.
  void backward_input(const at::Tensor& grad, Kept& kept) const { kept.grad_output = grad; }
  void backward_weights(Kept& kept, const GradientSums& gradients) const;

 private:
  size_t table_;
};

}  // namespace gyre
