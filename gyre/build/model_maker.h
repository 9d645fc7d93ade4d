// How a model is built and what it learns from, under the name of its ModelKind.
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
  // Of settings whose vocabulary is known: the embedding, `layers` blocks, the head.
  Layers (*layers)(const ModelSettings& settings);
  // Its inputs and targets made of plain text, sequences of context - tokens_around_text tokens whose targets are the
  // next ones. Null: that is what it learns from.
  std::unique_ptr<BatchSource> (*batches)(const ModelSettings& settings, std::unique_ptr<BatchSource> text,
                                          int64_t seed);
};
ModelMaker bert_maker();   // bert_maker.cpp
ModelMaker llama_maker();  // llama_maker.cpp
// The builtin ones, and what a program has added.
Registry<ModelMaker>& model_makers();

// Sequences of text that the model takes, and what it makes of them.
int64_t text_context(const ModelSettings& settings);
std::unique_ptr<BatchSource> model_batches(const ModelSettings& settings, std::unique_ptr<BatchSource> text,
                                           int64_t seed);

}  // namespace gyre
