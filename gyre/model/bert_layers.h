// The first and last layer of a BERT. Users go through build_bert() in bert.h.
#pragma once

#include <memory>

#include "gyre/model/bert.h"

namespace gyre {

std::shared_ptr<const Layer> make_bert_embedding(const BertConfig& config);  // bert_embedding.cpp
std::shared_ptr<const Layer> make_bert_head(const BertConfig& config);       // bert_head.cpp

inline constexpr double kBertNormEpsilon = 1e-12;

}  // namespace gyre
