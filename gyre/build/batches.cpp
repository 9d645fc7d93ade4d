#include "gyre/build/batches.h"

#include <utility>

#include "gyre/batches/masked_batches.h"
#include "gyre/batches/token_batches.h"

namespace gyre {
namespace {

bool is_bert(const Config& config) {
  return config.model.kind == "bert";
}

int64_t text_context(const Config& config) {
  return config.model.context - (is_bert(config) ? kTokensAroundSegments : 0);
}

std::unique_ptr<BatchSource> for_model(const Config& config, const Dataset& dataset,
                                       std::unique_ptr<BatchSource> text) {
  if (!is_bert(config)) return text;
  return std::make_unique<MaskedBatches>(std::move(text), dataset.vocabulary(), config.run.seed,
                                         config.model.sentence_order);
}

}  // namespace

std::unique_ptr<BatchSource> train_batches(const Config& config, const Dataset& dataset) {
  return for_model(config, dataset,
                   std::make_unique<RandomTokenBatches>(dataset.train(), config.pipeline.microbatch,
                                                        text_context(config), config.run.seed, dataset.vocabulary()));
}

ValidationBatches validation_batches(const Config& config, const Dataset& dataset) {
  auto text = std::make_unique<SequentialTokenBatches>(dataset.val(), config.pipeline.microbatch, text_context(config),
                                                       dataset.vocabulary());
  ValidationBatches batches;
  batches.count = text->count();
  batches.source = for_model(config, dataset, std::move(text));
  return batches;
}

}  // namespace gyre
