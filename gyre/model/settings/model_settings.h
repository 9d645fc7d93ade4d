// The table [model]: options that all transformers share. Options of a single kind are in that kind's own table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/model/settings/activation.h"
#include "gyre/model/settings/model_kind.h"

namespace gyre {

struct ModelSettings {
  std::string kind = "gpt";
  int64_t layers = 8;
  int64_t width = 256;
  int64_t heads = 8;
  int64_t context = 128;
  int64_t vocabulary = 0;
  int64_t mlp_width = 0;
  std::string activation = "gelu";
  bool bias = true;
  double dropout = 0;
  bool tie = false;
  KindTables own = KindTables::of(model_kinds());

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("kind", self.kind, one_of(model_kinds().names()), "architecture of the model");
    visit("layers", self.layers, between(1, 100000), "number of transformer blocks");
    visit("width", self.width, between(1, 1 << 20), "hidden size, that of the residual stream");
    visit("heads", self.heads, between(1, 1 << 20),
          "number of attention heads; must divide width, except with [model.llama] head_size");
    visit("context", self.context, between(1, 1 << 24), "tokens in a sequence");
    visit("vocabulary", self.vocabulary, between(0, 1 << 30),
          "number of tokens in the vocabulary; it may be larger than the data's. 0: the data's vocabulary and the "
          "special tokens of the kind that are not in it");
    visit("mlp_width", self.mlp_width, between(0, 1 << 24),
          "hidden size of the MLP; 0: 4 * width, for llama 8/3 * width rounded up to a multiple of 64");
    visit("activation", self.activation, one_of(activation_names()), "activation function of the MLP");
    visit("bias", self.bias, Range{}, "whether linear layers and norms have biases");
    visit("dropout", self.dropout, between(0, 0.999),
          "probability of dropout, after the embedding and on both branches of a block");
    visit("tie", self.tie, Range{},
          "whether the output layer uses the token embedding as its matrix: one weight, used twice");
  }
  // Whether changing the option makes a different model, which a checkpoint does not fit. All options of single kinds
  // do too.
  static bool is_identity(std::string_view key) { return key != "dropout"; }
  bool operator==(const ModelSettings&) const = default;
};

// mlp_width if given, else 4 * width. (Llama's default differs: llama_mlp_width.)
inline int64_t mlp_width(const ModelSettings& settings) {
  return settings.mlp_width > 0 ? settings.mlp_width : 4 * settings.width;
}

// Values that do not go together: for any kind, and for the kind that is chosen.
std::vector<OptionFault> faults_of(const ModelSettings& settings);
// Throws InputError for a value out of range, for values that do not go together, and for an unknown vocabulary (0).
void check_model(const ModelSettings& settings);

}  // namespace gyre
