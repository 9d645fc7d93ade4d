// What Llama and its descendants have alike.
#pragma once

#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// Those of all of them: a model has what its options give it.
std::vector<TensorPair> llama_tensors();
// What their class takes where config.json says nothing.
struct UsualHeads {
  int64_t key_value_heads = 0;  // 0: as many as heads
  int64_t head_size = 0;        // 0: width / heads
};
// The sizes, the rotary positions and the norms; kind = "llama".
void read_llama_parts(ConfigFields& config, const UsualHeads& usual, ModelSettings& settings);
void write_llama_parts(const ModelSettings& settings, nlohmann::ordered_json& config);

}  // namespace gyre
