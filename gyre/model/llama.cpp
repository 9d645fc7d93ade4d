#include "gyre/model/llama.h"

#include <memory>

#include "gyre/model/language_model_head.h"
#include "gyre/model/layer_of.h"
#include "gyre/model/rope_frequencies.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/transformer_block.h"

namespace gyre {

int64_t llama_mlp_width(const ModelSettings& settings) {
  constexpr int64_t kMultiple = 64;
  if (settings.mlp_width > 0) return settings.mlp_width;
  return (settings.width * 8 / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

Layers build_llama(const LlamaConfig& config) {
  check_model(config);
  BlockConfig block = block_config(config);
  block.heads.key_value = key_value_heads(config, config.heads);
  block.head_size = head_size(config, config.width, config.heads);
  block.qk_norm = config.qk_norm;
  block.rotary = std::make_shared<RotaryPositions>(config.context, rope_frequencies(config, block.head_size));
  block.mlp_width = llama_mlp_width(config);
  block.gated = true;
  block.qkv_bias = config.qkv_bias;
  block.norm = NormKind::RmsNorm;
  block.epsilon = config.norm_epsilon;
  Layers layers = {
      std::make_shared<LayerOf<Embedding>>(LayerName("embedding"), "token", config.vocabulary, config.width)};
  for (int number = 0; number < config.layers; ++number) add_transformer_block(block, number, layers);
  layers.push_back(
      make_language_model_head({{block.norm, config.width, false, block.epsilon}, config.vocabulary, config.tie}));
  return layers;
}

}  // namespace gyre
