#include "gyre/build/model_maker.h"

#include <utility>

#include "gyre/batches/masked_batches.h"
#include "gyre/model/bert.h"
#include "gyre/model/gpt.h"

namespace gyre {
namespace {

BertSettings bert_settings(const ModelSettings& model) {
  return model.own.of_kind(model.kind).get<BertSettings>();
}

Layers bert_layers(const ModelSettings& model) {
  return build_bert({model, bert_settings(model)});
}

std::unique_ptr<BatchSource> bert_batches(const ModelSettings& model, std::unique_ptr<BatchSource> text, int64_t seed) {
  return std::make_unique<MaskedBatches>(std::move(text), model.vocabulary - SpecialTokens::kCount, seed,
                                         bert_settings(model).sentence_order);
}

}  // namespace

Registry<ModelMaker>& model_makers() {
  static Registry<ModelMaker> makers("[model] kind",
                                     {{"gpt", build_gpt, nullptr}, {"bert", bert_layers, bert_batches}});
  return makers;
}

int64_t text_context(const ModelSettings& settings) {
  return settings.context - model_kinds().at(settings.kind).tokens_around_text;
}

std::unique_ptr<BatchSource> model_batches(const ModelSettings& settings, std::unique_ptr<BatchSource> text,
                                           int64_t seed) {
  const auto& batches = model_makers().at(settings.kind).batches;
  return batches == nullptr ? std::move(text) : batches(settings, std::move(text), seed);
}

}  // namespace gyre
