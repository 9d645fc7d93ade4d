// Llama (Touvron et al., 2023): pre-norm decoder with RMSNorm, rotary positions, SwiGLU, perhaps grouped heads of keys
// and values, no biases (Qwen2: of queries, keys and values), perhaps norms of queries and keys and heads of a size of
// their own (Qwen3).
#pragma once

#include "gyre/model/layer.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

struct LlamaConfig : ModelSettings, LlamaSettings {};

// Hidden size of the MLP: mlp_width, or 8/3 of the width, up to a multiple of 64.
int64_t llama_mlp_width(const ModelSettings& settings);

// The layers: "embedding", "blocks.0.attention", "blocks.0.mlp" ..., "head" (final norm, output matrix,
// cross-entropy).
// Errors: InputError for sizes that do not fit.
Layers build_llama(const LlamaConfig& config);

}  // namespace gyre
