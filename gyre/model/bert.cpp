#include "gyre/model/bert.h"

#include "gyre/kernels/activation.h"
#include "gyre/model/bert_layers.h"
#include "gyre/model/transformer_block.h"

namespace gyre {

Layers build_bert(const BertConfig& config) {
  check_model(config);
  BlockConfig block;
  block.layers =
      config.post_norm() ? 1 : static_cast<int>(config.layers);  // post-norm keeps the residual stream's size by itself
  block.width = config.width;
  block.heads = {config.heads, config.heads};
  block.context = config.context;
  block.mlp_width = mlp_width(config);
  block.activation = activation_by_name(config.activation);
  block.dropout = config.dropout;
  block.causal = false;
  block.post_norm = config.post_norm();
  block.epsilon = kBertNormEpsilon;
  Layers layers;
  layers.push_back(make_bert_embedding(config));
  for (int number = 0; number < config.layers; ++number) layers.push_back(make_transformer_block(block, number));
  layers.push_back(make_bert_head(config));
  return layers;
}

}  // namespace gyre
