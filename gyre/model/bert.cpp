#include "gyre/model/bert.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/kernels/activation.h"
#include "gyre/model/bert_layers.h"
#include "gyre/model/transformer_block.h"

namespace gyre {

Layers build_bert(const BertConfig& config) {
  if (config.width % config.heads != 0) {
    throw InputError(fmt::format("[model] heads is {}, which does not divide width {}; choose heads that do",
                                 config.heads, config.width));
  }
  BertConfig resolved = config;
  if (resolved.mlp_width == 0) resolved.mlp_width = 4 * resolved.width;
  BlockConfig block;
  block.layers = resolved.post_norm ? 1 : resolved.layers;  // post-norm keeps the residual stream's size by itself
  block.width = resolved.width;
  block.heads = {resolved.heads, resolved.heads};
  block.context = resolved.context;
  block.mlp_width = resolved.mlp_width;
  block.activation = activation_by_name(resolved.activation);
  block.dropout = resolved.dropout;
  block.causal = false;
  block.post_norm = resolved.post_norm;
  block.epsilon = kBertNormEpsilon;
  Layers layers;
  layers.push_back(make_bert_embedding(resolved));
  for (int number = 0; number < resolved.layers; ++number) layers.push_back(make_transformer_block(block, number));
  layers.push_back(make_bert_head(resolved));
  return layers;
}

}  // namespace gyre
