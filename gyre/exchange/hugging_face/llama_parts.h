// What Llama and its descendants have in common.
#pragma once

#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// The tensors of all of them; a model has those that its options give it.
std::vector<TensorPair> llama_tensors();
// The defaults of a transformers class for what config.json leaves out.
struct UsualHeads {
  int64_t key_value_heads = 0;  // 0: as many as heads
  int64_t head_size = 0;        // 0: width / heads
};
// These read and write the sizes, the rotary positions and the norms of a model of kind "llama".
void read_llama_parts(ConfigFields& config, const UsualHeads& usual, ModelSettings& settings);
void write_llama_parts(const ModelSettings& settings, nlohmann::ordered_json& config);

}  // namespace gyre
