// A small model of each kind, with batches for it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gyre/batches/masked_batches.h"
#include "gyre/model/bert.h"
#include "gyre/model/llama.h"
#include "runtime/fixture.h"

namespace gyre::testing_support {

struct TinyModel {
  Layers layers;
  std::unique_ptr<BatchSource> batches;
};

inline TinyModel tiny_model(const std::string& kind) {
  constexpr int64_t kVocabulary = 29, kContext = 16;
  if (kind == "gpt") return {build_gpt(tiny_gpt(0.1)), std::make_unique<SyntheticBatches>(tiny_batches())};
  if (kind == "llama") {
    LlamaConfig llama;
    static_cast<ModelSettings&>(llama) = tiny_gpt();
    llama.kind = kind;
    llama.activation = "silu";
    llama.bias = false;
    llama.key_value_heads = 2;
    return {build_llama(llama), std::make_unique<SyntheticBatches>(tiny_batches())};
  }
  BertConfig bert;
  static_cast<ModelSettings&>(bert) = tiny_gpt(0.1);
  bert.kind = kind;
  bert.vocabulary = kVocabulary + SpecialTokens::kCount;
  bert.sentence_order = true;
  auto text = std::make_unique<SyntheticBatches>(2, kContext - kTokensAroundSegments, kVocabulary);
  return {build_bert(bert), std::make_unique<MaskedBatches>(std::move(text), SpecialTokens(kVocabulary), 1, true)};
}

}  // namespace gyre::testing_support
