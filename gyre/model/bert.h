// BERT (Devlin et al., 2018): bidirectional encoder trained to predict masked tokens, and optionally whether two
// segments are in their original order (ALBERT's sentence-order prediction). Post-norm as published, or pre-norm.
#pragma once

#include "gyre/model/layer.h"
#include "gyre/model/settings/bert_settings.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

// The vocabulary includes the special tokens.
struct BertConfig : ModelSettings, BertSettings {
  bool post_norm() const { return norm == "post"; }
  // The token that ends a segment.
  int64_t separator() const { return SpecialTokens(*this, vocabulary).separator; }
};

// The layers: "embedding", "blocks.0.attention", "blocks.0.mlp" ..., "head". Targets are (batch, context) int64: the
// original token of a masked position, -1 elsewhere. Column 0 is the target of the sentence-order head (0 or 1), or -1.
// Errors: as check_model.
Layers build_bert(const BertConfig& config);

}  // namespace gyre
