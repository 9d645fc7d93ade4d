// Models for tests that go through every kind of layer.
#pragma once

#include <memory>

#include "gyre/model/bert.h"
#include "gyre/model/gpt.h"
#include "gyre/model/language_model_head.h"
#include "gyre/model/layer_of.h"
#include "gyre/model/sublayers/embedding.h"
#include "gyre/model/transformer_block.h"

namespace gyre::testing_support {

// A family of parts that neither GPT nor BERT has all of: RMSNorm, rotary positions, gated MLP, grouped heads.
struct LlamaConfig {
  int layers = 2;
  int64_t width = 24, vocabulary = 17, context = 7, mlp_width = 20;
  AttentionHeads heads{6, 2};
  double rotary_base = 100, epsilon = 1e-5;
};

inline Layers build_llama(const LlamaConfig& config) {
  BlockConfig block;
  block.layers = config.layers;
  block.width = config.width;
  block.heads = config.heads;
  block.rotary_base = config.rotary_base;
  block.context = config.context;
  block.mlp_width = config.mlp_width;
  block.activation = Activation::Silu;
  block.gated = true;
  block.bias = false;
  block.norm = NormKind::RmsNorm;
  block.epsilon = config.epsilon;
  Layers layers = {std::make_shared<LayerOf<Embedding>>("embedding", "token", config.vocabulary, config.width)};
  for (int number = 0; number < config.layers; ++number) layers.push_back(make_transformer_block(block, number));
  layers.push_back(make_language_model_head({{block.norm, config.width, false, config.epsilon}, config.vocabulary}));
  return layers;
}

inline ModelSettings tiny_gpt() {
  ModelSettings config;
  config.layers = 1;
  config.width = 24;
  config.heads = 4;
  config.context = 43;
  config.vocabulary = 50;
  return config;
}

inline BertConfig tiny_bert() {
  BertConfig config;
  config.layers = 1;
  config.width = 24;
  config.heads = 4;
  config.context = 43;
  config.vocabulary = 50;
  config.kind = "bert";
  return config;
}

}  // namespace gyre::testing_support
