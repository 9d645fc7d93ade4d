// Llama's own options, and its entry in the registry of models.
#pragma once

#include <cstdint>

#include "gyre/core/options.h"
#include "gyre/model/settings/model_kind.h"

namespace gyre {

// [model.llama]
struct LlamaSettings {
  int64_t key_value_heads = 0;
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  bool qkv_bias = false;
  bool qk_norm = false;
  int64_t head_size = 0;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("key_value_heads", self.key_value_heads, between(0, 1 << 20),
          "number of key and value heads; each is shared by the same number of query heads (grouped-query attention). "
          "Must divide heads; 0: as many as heads");
    visit("rope_theta", self.rope_theta, between(1, 1e12), "base of the rotary position embedding");
    visit("norm_epsilon", self.norm_epsilon, between(1e-12, 1), "epsilon of the RMSNorms, added to the mean square");
    visit("qkv_bias", self.qkv_bias, Range{}, "whether the query, key and value projections have biases, as in Qwen2");
    visit("qk_norm", self.qk_norm, Range{}, "whether queries and keys are normalised in each head, as in Qwen3");
    visit("head_size", self.head_size, between(0, 1 << 16), "size of a head; 0: width / heads");
  }
  bool operator==(const LlamaSettings&) const = default;
};

ModelKind llama_kind();

// The number of key-value heads of a model with `heads` query heads.
inline int64_t key_value_heads(const LlamaSettings& settings, int64_t heads) {
  return settings.key_value_heads > 0 ? settings.key_value_heads : heads;
}

// Elements of each head.
inline int64_t head_size(const LlamaSettings& settings, int64_t width, int64_t heads) {
  return settings.head_size > 0 ? settings.head_size : width / heads;
}

}  // namespace gyre
