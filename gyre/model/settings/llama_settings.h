// Llama's own options, and its entry in the registry of models.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/core/options.h"
#include "gyre/model/settings/model_kind.h"

namespace gyre {

// How rotary positions are stretched: model/rope_frequencies.h.
struct RopeScaling {
  std::string kind = "none";
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_context = 8192;
  bool operator==(const RopeScaling&) const = default;
};

// [model.llama]
struct LlamaSettings {
  int64_t key_value_heads = 0;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
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
    visit("rope_scaling", self.rope_scaling.kind, one_of({"none", "linear", "llama3"}),
          "how rotary positions are stretched, for contexts longer than those that a model was first trained on. "
          "linear: all turn slower by rope_factor; llama3: those do that turn slowly, as in Llama 3.1");
    visit("rope_factor", self.rope_scaling.factor, between(1, 1e6), "factor of the stretch");
    visit("rope_low_freq_factor", self.rope_scaling.low_freq_factor, between(1e-6, 1e6),
          "llama3: what turns less often than this within rope_original_context is stretched by the whole factor");
    visit("rope_high_freq_factor", self.rope_scaling.high_freq_factor, between(1e-6, 1e6),
          "llama3: what turns more often than this is not stretched; between the two, the stretch changes over");
    visit("rope_original_context", self.rope_scaling.original_context, between(1, int64_t{1} << 31),
          "llama3: the context that the model was first trained on");
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
