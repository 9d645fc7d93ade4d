// The first and last layer of a GPT. Users go through build_gpt() in gpt.h.
#pragma once

#include <memory>

#include "gyre/model/gpt.h"

namespace gyre {

std::shared_ptr<const Layer> make_gpt_embedding(const GptConfig& config);  // gpt_embedding.cpp
std::shared_ptr<const Layer> make_gpt_head(const GptConfig& config);       // gpt_head.cpp

inline constexpr double kGptNormEpsilon = 1e-5;

}  // namespace gyre
