// The first and last layer of a GPT. Users go through build_gpt() in gpt.h.
#pragma once

#include <memory>

#include "gyre/model/gpt.h"
#include "gyre/model/transformer_layers.h"

namespace gyre {

std::shared_ptr<const Layer> make_gpt_embedding(const GptConfig& config);  // gpt_embedding.cpp
std::shared_ptr<const Layer> make_gpt_head(const GptConfig& config);       // gpt_head.cpp

inline constexpr double kLayerNormEpsilon = 1e-5;  // GPT-2's

}  // namespace gyre
