// The transformer block: attention and MLP, each a branch of the residual stream.
#pragma once

#include <cstdint>
#include <memory>

#include "gyre/kernels/activation.h"
#include "gyre/kernels/attention.h"
#include "gyre/kernels/rotary.h"
#include "gyre/model/layer.h"
#include "gyre/model/settings/model_settings.h"
#include "gyre/model/sublayers/norm.h"

namespace gyre {

struct BlockConfig {
  int layers = 1;  // blocks of the whole model: the more there are, the smaller the residual matrices' initial values
  int64_t width = 0;
  AttentionHeads heads;
  int64_t head_size = 0;
  bool qk_norm = false;                           // RMSNorms of each head's queries and keys
  std::shared_ptr<const RotaryPositions> rotary;  // null: no rotary positions
  int64_t context = 0;
  int64_t mlp_width = 0;
  Activation activation = Activation::Gelu;
  bool gated = false;  // the MLP
  bool bias = true;
  bool qkv_bias = false;  // queries, keys and values have biases even if `bias` is false
  double dropout = 0;
  bool causal = true;
  NormKind norm = NormKind::LayerNorm;
  bool post_norm = false;
  double epsilon = NormOptions().epsilon;
};

// The fields that every model family takes from its settings in the same way; the others keep their defaults.
BlockConfig block_config(const ModelSettings& settings);

// Adds block number `number`: two layers, attention and MLP, so that a stage may begin between them.
void add_transformer_block(const BlockConfig& config, int number, Layers& layers);

}  // namespace gyre
