// GPT: pre-norm transformer with learned positions, GELU or ReLU, optional biases and an untied head.
#pragma once

#include "gyre/model/layer.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// The layers: "embedding", "blocks.0.attention", "blocks.0.mlp" ..., "head" (final norm, output matrix,
// cross-entropy).
// Errors: as check_model.
Layers build_gpt(const ModelSettings& settings);

}  // namespace gyre
