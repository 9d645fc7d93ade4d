// BERT (Devlin et al., 2018): bidirectional encoder trained to fill masked tokens, optionally also to tell whether two
// segments are in their order (ALBERT's sentence order). Post-norm as published, or pre-norm.
#pragma once

#include "gyre/model/layer.h"
#include "gyre/model/settings/bert_settings.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// The vocabulary includes the special tokens.
struct BertConfig : ModelSettings, BertSettings {
  bool post_norm() const { return norm == "post"; }
  // The token that ends a segment: what comes after the first has token type 1.
  int64_t separator() const { return SpecialTokens(*this, vocabulary).separator; }
};

// The layers: "embedding", "blocks.0.attention", "blocks.0.mlp" ..., "head". Targets are (batch, context) int64: the
// token to be found, or -1 where there is nothing to predict; column 0 has the order of the segments (0 or 1) for the
// sentence-order head, or -1. Errors: InputError for sizes that do not fit.
Layers build_bert(const BertConfig& config);

}  // namespace gyre
