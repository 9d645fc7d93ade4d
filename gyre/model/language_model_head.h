// The last layer of models that predict the next token: final norm, output matrix (its own, or tied to the token
// embeddings), mean cross-entropy.
#pragma once

#include <cstdint>
#include <memory>

#include "gyre/model/layer.h"
#include "gyre/model/sublayers/norm.h"

namespace gyre {

struct LanguageModelHeadConfig {
  NormOptions norm;
  int64_t vocabulary = 0;
  bool tied = false;  // the output matrix is the table of token embeddings
};

// The layer "head".
std::shared_ptr<const Layer> make_language_model_head(const LanguageModelHeadConfig& config);

}  // namespace gyre
