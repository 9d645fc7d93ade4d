#include "gyre/build/batches.h"

#include <utility>

#include "gyre/batches/token_batches.h"
#include "gyre/build/model_maker.h"

namespace gyre {

TrainBatches train_batches(const Config& config, const Dataset& dataset, const CheckpointRecord& from) {
  const auto order = config.data.order == "epochs" ? SequenceOrder::Epochs : SequenceOrder::Random;
  // Only tokens count the sequences: microbatches may have had other sizes, but the context cannot change.
  const DataPosition position = {from.microbatches, from.tokens / config.model.context, from.mixture};
  auto text =
      std::make_unique<DrawnTokenBatches>(dataset.train(), config.pipeline.microbatch, text_context(config.model),
                                          config.run.seed, dataset.vocabulary(), order, position);
  TrainBatches batches;
  if (dataset.train().size() > 1) batches.mixture = text->mixture().record();
  batches.source = model_batches(config.model, std::move(text), config.run.seed);
  return batches;
}

ValidationBatches validation_batches(const Config& config, const Dataset& dataset, int64_t most) {
  auto text = std::make_unique<SequentialTokenBatches>(dataset.val(), config.pipeline.microbatch,
                                                       text_context(config.model), dataset.vocabulary(), most);
  ValidationBatches batches;
  batches.count = text->count();
  batches.source = model_batches(config.model, std::move(text), config.run.seed);
  return batches;
}

}  // namespace gyre
