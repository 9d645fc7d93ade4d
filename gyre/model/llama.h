// Llama (Touvron et al., 2023): pre-norm decoder with RMSNorm, rotary positions, SwiGLU and no biases. Options:
// grouped-query attention, biases of queries, keys and values (Qwen2), norms of queries and keys and an explicit head
// size (Qwen3), rotary positions that are stretched for long contexts (Llama 3.1).
#pragma once

#include "gyre/model/layer.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

struct LlamaConfig : ModelSettings, LlamaSettings {};

// Hidden size of the MLP: mlp_width if given, else 8/3 of the width, rounded up to a multiple of 64.
int64_t llama_mlp_width(const ModelSettings& settings);

// The layers: "embedding", "blocks.0.attention", "blocks.0.mlp" ..., "head" (final norm, output matrix,
// cross-entropy).
// Errors: as check_model.
Layers build_llama(const LlamaConfig& config);

}  // namespace gyre
