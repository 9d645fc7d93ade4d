// Multi-head self-attention: a fused projection to queries, keys and values, optionally norms of each head's queries
// and keys and rotary positions, the attention of every head, and a projection back to the residual stream. Query heads
// may share keys and values (grouped queries).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "gyre/kernels/attention.h"
#include "gyre/kernels/rotary.h"
#include "gyre/model/sublayers/linear.h"
#include "gyre/model/sublayers/norm.h"

namespace gyre {

struct AttentionOptions {
  int64_t width = 0;
  AttentionHeads heads;
  int64_t head_size = 0;
  bool norms = false;                             // RMSNorms of queries and keys, each with one weight for all heads
  double epsilon = 1e-5;                          // of these norms
  std::shared_ptr<const RotaryPositions> rotary;  // null: no rotary positions
  int64_t context = 0;                            // the model's context length, for cost()
  bool causal = true;
  bool bias = true;  // of the projection back
  bool qkv_bias = true;
  float projection_deviation = kInitialDeviation;
};

class Attention {
 public:
  using Options = AttentionOptions;
  struct Kept {
    Linear::Kept qkv;
    Norm::Kept query_norm, key_norm;
    HeadTensors heads;                  // as attention reads them: after norms and rotary positions
    at::Tensor softmax_rows, recorded;  // see Attended
    Linear::Kept projection;
    auto members() const {
      return std::tie(qkv, query_norm, key_norm, heads.query, heads.key, heads.value, softmax_rows, recorded,
                      projection);
    }
  };
  static at::Tensor& input(Kept& kept) { return kept.qkv.input; }

  // Declares NAME.qkv, NAME.projection and, with norms, NAME.q_norm and NAME.k_norm.
  Attention(ParameterList& parameters, const std::string& name, const AttentionOptions& options);

  // x: (batch, context, width). Returns the same shape.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const;
  void backward_weights(Kept& kept, const GradientSums& gradients) const;
  bool decodes() const { return options_.causal; }
  double cost() const;
  double kept_bytes(const MicrobatchShape& shape) const;
  double passing_bytes(const MicrobatchShape& shape) const;          // see Layer
  double weights_passing_bytes(const MicrobatchShape& shape) const;  // see Layer
  double split_bytes(const MicrobatchShape& shape) const;            // see Layer

 private:
  // Attention of the tokens that follow those in `decoding`, to which their keys and values are added. Returns (batch,
  // tokens, query heads * size).
  at::Tensor attend_from(DecodingState& decoding, const HeadTensors& heads) const;

  AttentionOptions options_;
  Linear qkv_, projection_;
  std::optional<Norm> query_norm_, key_norm_;
};
static_assert(Sublayer<Attention>);

}  // namespace gyre
