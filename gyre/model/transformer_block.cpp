#include "gyre/model/transformer_block.h"

#include <fmt/format.h>

#include <cmath>

#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/attention.h"
#include "gyre/model/sublayers/mlp.h"
#include "gyre/model/sublayers/residual.h"

namespace gyre {
namespace {

// Initial deviation of the two matrices that write to the residual stream: smaller the more blocks there are (GPT-2).
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

}  // namespace

BlockConfig block_config(const ModelSettings& settings) {
  BlockConfig block;
  block.layers = static_cast<int>(settings.layers);
  block.width = settings.width;
  block.heads = {settings.heads, settings.heads};
  block.head_size = settings.width / settings.heads;
  block.context = settings.context;
  block.mlp_width = mlp_width(settings);
  block.activation = activation_by_name(settings.activation);
  block.bias = settings.bias;
  block.dropout = settings.dropout;
  return block;
}

void add_transformer_block(const BlockConfig& config, int number, Layers& layers) {
  const std::string block = fmt::format("blocks.{}", number);
  layers.push_back(std::make_shared<LayerOf<Residual<Attention>>>(
      LayerName(block + ".attention", block), residual_options(config, 1, "attention"), attention_options(config)));
  layers.push_back(std::make_shared<LayerOf<Residual<Mlp>>>(LayerName(block + ".mlp", block),
                                                            residual_options(config, 2, "mlp"), mlp_options(config)));
}

}  // namespace gyre
