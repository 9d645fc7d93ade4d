// Multi-head self-attention: a fused projection to queries, keys and values, the attention of every head, and a
// projection back to the residual stream.
#pragma once

#include <string>
#include <tuple>

#include "gyre/model/sublayers/linear.h"

namespace gyre {

struct AttentionOptions {
  int64_t width = 0;
  int64_t heads = 1;
  int64_t context = 0;  // the longest, for the cost
  bool causal = true;
  bool bias = true;
  float projection_deviation = kInitialDeviation;
};

class Attention {
 public:
  using Options = AttentionOptions;
  struct Kept {
    Linear::Kept qkv;
    at::Tensor heads;          // q, k, v per head
    at::Tensor probabilities;  // (batch * heads, context, context)
    Linear::Kept projection;
    auto members() const { return std::tie(qkv, heads, probabilities, projection); }
  };

  // Declares NAME.qkv and NAME.projection.
  Attention(ParameterList& parameters, const std::string& name, const AttentionOptions& options);

  // x: (batch, context, width). Returns the same shape.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, std::span<at::Tensor> gradients) const;
  double cost() const;
  double kept_bytes(const MicrobatchShape& shape) const;

 private:
  AttentionOptions options_;
  Linear qkv_, projection_;
};
static_assert(Sublayer<Attention>);

}  // namespace gyre
