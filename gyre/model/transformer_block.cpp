#include "gyre/model/transformer_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/attention.h"
#include "gyre/model/sublayers/mlp.h"
#include "gyre/model/sublayers/residual.h"

namespace gyre {
namespace {

// The two matrices that write to the residual stream start smaller the more of them there are (GPT-2).
float residual_deviation(const BlockConfig& config) {
  return static_cast<float>(kInitialDeviation / std::sqrt(2.0 * config.layers));
}

AttentionOptions attention_options(const BlockConfig& config) {
  AttentionOptions attention;
  attention.width = config.width;
  attention.heads = config.heads;
  attention.head_size = config.head_size;
  attention.norms = config.qk_norm;
  attention.epsilon = config.epsilon;
  attention.rotary = config.rotary;
  attention.context = config.context;
  attention.causal = config.causal;
  attention.bias = config.bias;
  attention.qkv_bias = config.bias || config.qkv_bias;
  attention.projection_deviation = residual_deviation(config);
  return attention;
}

MlpOptions mlp_options(const BlockConfig& config) {
  MlpOptions mlp;
  mlp.width = config.width;
  mlp.hidden = config.mlp_width;
  mlp.activation = config.activation;
  mlp.gated = config.gated;
  mlp.bias = config.bias;
  mlp.out_deviation = residual_deviation(config);
  return mlp;
}

// number: 1 for the attention, 2 for the MLP.
ResidualOptions residual_options(const BlockConfig& config, uint32_t number, const char* branch) {
  ResidualOptions residual;
  residual.norm_name = fmt::format("norm{}", number);
  residual.branch_name = branch;
  residual.norm = {config.norm, config.width, config.bias, config.epsilon};
  residual.post_norm = config.post_norm;
  residual.dropout = {config.dropout, config.width, number - 1};
  return residual;
}

class TransformerBlock {
 public:
  struct Kept {
    Residual<Attention>::Kept attention;
    Residual<Mlp>::Kept mlp;
    auto members() const { return std::tie(attention, mlp); }
  };

  TransformerBlock(ParameterList& parameters, const BlockConfig& config)
      : causal_(config.causal),
        attention_(parameters, residual_options(config, 1, "attention"), attention_options(config)),
        mlp_(parameters, residual_options(config, 2, "mlp"), mlp_options(config)) {}

  // x: (batch, context, width). Returns the same shape.
  at::Tensor forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const {
    return mlp_.forward(weights, attention_.forward(weights, x, context, kept.attention), context, kept.mlp);
  }
  at::Tensor backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
    return attention_.backward_input(weights, mlp_.backward_input(weights, grad, kept.mlp), kept.attention);
  }
  void backward_weights(Kept& kept, const GradientSums& gradients) const {
    attention_.backward_weights(kept.attention, gradients);
    mlp_.backward_weights(kept.mlp, gradients);
  }
  double cost() const { return attention_.cost() + mlp_.cost(); }
  bool decodes() const { return causal_; }
  double kept_bytes(const MicrobatchShape& shape) const {
    return attention_.kept_bytes(shape) + mlp_.kept_bytes(shape);
  }
  double passing_bytes(const MicrobatchShape& shape) const {
    return std::max(attention_.branch().passing_bytes(shape), mlp_.branch().passing_bytes(shape));
  }

 private:
  bool causal_;
  Residual<Attention> attention_;
  Residual<Mlp> mlp_;
};

}  // namespace

BlockConfig block_config(const ModelSettings& settings) {
  BlockConfig block;
  block.layers = static_cast<int>(settings.layers);
  block.width = settings.width;
  block.heads = {settings.heads, settings.heads};
  block.context = settings.context;
  block.mlp_width = mlp_width(settings);
  block.activation = activation_by_name(settings.activation);
  block.bias = settings.bias;
  block.dropout = settings.dropout;
  return block;
}

std::shared_ptr<const Layer> make_transformer_block(const BlockConfig& config, int number) {
  return std::make_shared<LayerOf<TransformerBlock>>(fmt::format("blocks.{}", number), config);
}

}  // namespace gyre
