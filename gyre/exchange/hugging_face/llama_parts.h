// What Llama and its descendants have alike.
#pragma once

#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// Those of all of them: a model has what its options give it.
std::vector<TensorPair> llama_tensors();
// The sizes, the rotary positions and the norms; kind = "llama". `usual_key_value_heads`: what their class takes where
// nothing is said; 0: as many as heads.
void read_llama_parts(ConfigFields& config, int64_t usual_key_value_heads, ModelSettings& settings);
void write_llama_parts(const ModelSettings& settings, nlohmann::ordered_json& config);

}  // namespace gyre
