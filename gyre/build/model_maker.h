// How a model is built and what it learns from, by the name of its ModelKind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gyre/batches/batch.h"
#include "gyre/core/registry.h"
#include "gyre/model/layer.h"
#include "gyre/model/settings/model_settings.h"

namespace gyre {

struct ModelMaker {
  std::string name;
  // Builds the embedding, `layers` blocks and the head, from settings whose vocabulary is known.
  Layers (*layers)(const ModelSettings& settings);
  // Makes its inputs and targets from plain text: sequences of context - tokens_around_text tokens, whose targets are
  // the tokens after them. Null: it learns from the text as it is.
  std::unique_ptr<BatchSource> (*batches)(const ModelSettings& settings, std::unique_ptr<BatchSource> text,
                                          int64_t seed);

  const char* missing() const { return layers == nullptr ? "layers" : nullptr; }
};
ModelMaker bert_maker();   // bert_maker.cpp
ModelMaker llama_maker();  // llama_maker.cpp
// The built-in makers, and those that a program has added.
Registry<ModelMaker>& model_makers();

// The length of the text sequences that the model takes.
int64_t text_context(const ModelSettings& settings);
// The model's batches, made from such text.
std::unique_ptr<BatchSource> model_batches(const ModelSettings& settings, std::unique_ptr<BatchSource> text,
                                           int64_t seed);

}  // namespace gyre
