// The transformer block: attention and MLP, each beside the residual stream.
#pragma once

#include <cstdint>
#include <memory>

#include "gyre/kernels/activation.h"
#include "gyre/model/layer.h"

namespace gyre {

struct BlockConfig {
  int layers = 1;  // blocks of the whole model: the residual matrices start smaller the more there are
  int64_t width = 0;
  int64_t heads = 1;
  int64_t context = 0;
  int64_t mlp_width = 0;
  Activation activation = Activation::Gelu;
  bool bias = true;
  double dropout = 0;
  bool causal = true;
  bool post_norm = false;
  double epsilon = 1e-5;  // of the norms
};

// The layer "blocks.NUMBER".
std::shared_ptr<const Layer> make_transformer_block(const BlockConfig& config, int number);

}  // namespace gyre
