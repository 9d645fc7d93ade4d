// How BERT is built and what it learns from.
#include <utility>

#include "gyre/batches/masked_batches.h"
#include "gyre/build/model_maker.h"
#include "gyre/model/bert.h"

namespace gyre {
namespace {

BertSettings bert_settings(const ModelSettings& model) {
  return model.own.of_kind(model.kind).get<BertSettings>();
}

Layers bert_layers(const ModelSettings& model) {
  return build_bert({model, bert_settings(model)});
}

std::unique_ptr<BatchSource> bert_batches(const ModelSettings& model, std::unique_ptr<BatchSource> text, int64_t seed) {
  const BertSettings settings = bert_settings(model);
  return std::make_unique<MaskedBatches>(std::move(text), SpecialTokens(settings, model.vocabulary), seed,
                                         settings.sentence_order);
}

}  // namespace

ModelMaker bert_maker() {
  return {"bert", bert_layers, bert_batches};
}

}  // namespace gyre
