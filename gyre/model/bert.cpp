#include "gyre/model/bert.h"

#include "gyre/model/bert_layers.h"
#include "gyre/model/transformer_block.h"

namespace gyre {

Layers build_bert(const BertConfig& config) {
  check_model(config);
  BlockConfig block = block_config(config);
  if (config.post_norm()) block.layers = 1;  // the norm after each branch already bounds the residual stream
  block.causal = false;
  block.post_norm = config.post_norm();
  block.epsilon = kBertNormEpsilon;
  Layers layers;
  layers.push_back(make_bert_embedding(config));
  for (int number = 0; number < config.layers; ++number) add_transformer_block(block, number, layers);
  layers.push_back(make_bert_head(config));
  return layers;
}

}  // namespace gyre
