// What the transformers have in common: the block, and how their parameters are described.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gyre/model/layer.h"

namespace gyre {

struct BlockConfig {
  int layers = 1;  // blocks of the whole model: the residual matrices start smaller the more there are
  int64_t width = 0;
  int64_t heads = 1;
  int64_t context = 0;
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  bool bias = true;
  double dropout = 0;
  bool causal = true;
  bool post_norm = false;
  double epsilon = 1e-5;  // of the norms
};
std::shared_ptr<const Layer> make_transformer_block(const BlockConfig& config, int number);  // transformer_block.cpp

inline constexpr float kInitialDeviation = 0.02f;  // GPT-2's and BERT's

// What layers keep of a token besides elements of the compute type.
inline constexpr double kTokenBytes = 8;     // its number, int64
inline constexpr double kNormBytes = 2 * 4;  // a norm's mean and deviation, fp32

inline ParameterSpec matrix_spec(const char* name, int64_t out, int64_t in, float deviation, bool rotate,
                                 int row_blocks = 1) {
  ParameterSpec spec;
  spec.name = name;
  spec.shape = {out, in};
  spec.initialization = {Initialization::Kind::Normal, deviation};
  spec.decay = true;
  spec.rotate = rotate;
  spec.row_blocks = row_blocks;
  return spec;
}

inline ParameterSpec vector_spec(const char* name, int64_t size, Initialization::Kind kind) {
  ParameterSpec spec;
  spec.name = name;
  spec.shape = {size};
  spec.initialization = {kind, 0};
  return spec;
}

}  // namespace gyre
