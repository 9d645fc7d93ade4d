// What Llama and its descendants have in common.
#pragma once

#include <string>
#include <vector>

#include "gyre/exchange/hugging_face/family.h"

namespace gyre {

// One of them. The rest of the family is the same for all; a model has those tensors that its options give it.
Family llama_family_of(const char* model_type, const char* architecture, decltype(Family::read) read,
                       decltype(Family::misfit) misfit, decltype(Family::write) write);
// The defaults of a transformers class for what config.json leaves out.
struct UsualHeads {
  int64_t key_value_heads = 0;  // 0: as many as heads
  int64_t head_size = 0;        // 0: width / heads
};
// These read and write the sizes, the rotary positions and the norms of a model of kind "llama".
void read_llama_parts(ConfigFields& config, const UsualHeads& usual, ModelSettings& settings);
void write_llama_parts(const ModelSettings& settings, nlohmann::ordered_json& config);
// Some layers of a model may limit attention to a window of the newest positions, as config.json says in
// "use_sliding_window" and "layer_types". gyre has no windows. A sequence that fits the window does not need one, so
// fit_into_window makes the window the longest sequence that the model takes.
bool has_windows(ConfigFields& config);
void fit_into_window(ConfigFields& config, ModelSettings& settings);
// Whether sequences still fit the window of `config`, which is as it was imported. If not, the model was trained
// without windows since, and write_windows makes `config` say so.
bool keeps_window(const ModelSettings& settings, const nlohmann::ordered_json& config);
void write_windows(const ModelSettings& settings, nlohmann::ordered_json& config);
// Why a model does not belong to a family, "a Llama", by whether its queries, keys and values have biases, and its
// queries and keys norms; empty if it does.
std::string misfit_of_heads(const ModelSettings& settings, const char* a_model, bool qkv_bias, bool qk_norm);

}  // namespace gyre
