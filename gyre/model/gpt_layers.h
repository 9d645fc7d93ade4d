// The three kinds of layer that a GPT is made of. Users go through build_gpt() in gpt.h.
#pragma once

#include <memory>

#include "gyre/model/gpt.h"
#include "gyre/model/layer.h"

namespace gyre {

std::shared_ptr<const Layer> make_gpt_embedding(const GptConfig& config);          // gpt_embedding.cpp
std::shared_ptr<const Layer> make_gpt_block(const GptConfig& config, int number);  // gpt_block.cpp
std::shared_ptr<const Layer> make_gpt_head(const GptConfig& config);               // gpt_head.cpp

inline constexpr float kInitialDeviation = 0.02f;  // GPT-2's
inline constexpr double kLayerNormEpsilon = 1e-5;  // GPT-2's

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
