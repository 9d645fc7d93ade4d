// GPT: pre-norm transformer with learned positions, GELU or ReLU, optional biases and an untied head.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/model/layer.h"

namespace gyre {

struct GptConfig {
  int layers = 8;  // transformer blocks
  int64_t width = 256;
  int64_t heads = 8;
  int64_t context = 128;
  int64_t vocabulary = 256;
  int64_t mlp_width = 0;            // 0: 4 * width
  std::string activation = "gelu";  // gelu (exact) | gelu-tanh | relu
  bool bias = true;
  double dropout = 0;
};

// The layers: "embedding", "blocks.0" ... "blocks.N-1", "head" (final norm, output matrix, cross-entropy).
// Errors: InputError for sizes that do not fit (heads not dividing width, ...).
Layers build_gpt(const GptConfig& config);

}  // namespace gyre
