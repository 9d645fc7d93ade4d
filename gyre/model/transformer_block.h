// The transformer block: attention and MLP, each beside the residual stream.
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
  int layers = 1;  // blocks of the whole model: the residual matrices start smaller the more there are
  int64_t width = 0;
  AttentionHeads heads;
  int64_t head_size = 0;                          // 0: width / heads.query
  bool qk_norm = false;                           // RMSNorms of each head's queries and keys
  std::shared_ptr<const RotaryPositions> rotary;  // null: positions turn nothing
  int64_t context = 0;
  int64_t mlp_width = 0;
  Activation activation = Activation::Gelu;
  bool gated = false;  // the MLP
  bool bias = true;
  bool qkv_bias = false;  // without `bias`: whether queries, keys and values have it all the same
  double dropout = 0;
  bool causal = true;
  NormKind norm = NormKind::LayerNorm;
  bool post_norm = false;
  double epsilon = NormOptions().epsilon;
};

// What every family takes of its settings alike; the rest is its own.
BlockConfig block_config(const ModelSettings& settings);

// Adds block NUMBER, which is two layers, attention and MLP, so that a stage may begin between them.
void add_transformer_block(const BlockConfig& config, int number, Layers& layers);

}  // namespace gyre
