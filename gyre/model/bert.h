// BERT (Devlin et al., 2018): bidirectional encoder trained to fill masked tokens, optionally also to tell whether two
// segments are in their order (ALBERT's sentence order). Post-norm as published, or pre-norm.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/model/layer.h"

namespace gyre {

struct BertConfig {
  int layers = 8;  // transformer blocks
  int64_t width = 256;
  int64_t heads = 8;
  int64_t context = 128;
  int64_t vocabulary = 259;  // the special tokens included
  int64_t separator = 257;   // the token that ends a segment: what comes after the first has token type 1
  int64_t mlp_width = 0;     // 0: 4 * width
  std::string activation = "gelu";
  double dropout = 0;
  bool post_norm = true;
  bool sentence_order = false;
};

// The layers: "embedding", "blocks.0" ..., "head". Targets are (batch, context) int64: the token to be found, or -1
// where there is nothing to predict; column 0 has the order of the segments (0 or 1) for the sentence-order head, or
// -1. Errors: InputError for sizes that do not fit.
Layers build_bert(const BertConfig& config);

}  // namespace gyre
