#include "gyre/build/model_maker.h"

#include <utility>

#include "gyre/model/gpt.h"

namespace gyre {

Registry<ModelMaker>& model_makers() {
  static Registry<ModelMaker> makers("[model] kind", {{"gpt", build_gpt, nullptr}, bert_maker(), llama_maker()});
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
