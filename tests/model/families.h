// Models for tests that go through every kind of layer.
#pragma once

#include "gyre/model/bert.h"
#include "gyre/model/gpt.h"
#include "gyre/model/llama.h"

namespace gyre::testing_support {

inline LlamaConfig tiny_llama() {
  LlamaConfig config;
  config.kind = "llama";
  config.layers = 2;
  config.width = 24;
  config.heads = 6;
  config.key_value_heads = 2;
  config.vocabulary = 17;
  config.context = 7;
  config.mlp_width = 20;
  config.activation = "silu";
  config.bias = false;
  config.rope_theta = 100;
  return config;
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
