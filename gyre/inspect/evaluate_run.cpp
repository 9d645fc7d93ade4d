#include "gyre/inspect/evaluate_run.h"

#include <cmath>
#include <vector>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/runtime/executor.h"

namespace gyre {
namespace {

struct LossCounter final : SegmentObserver {
  void on_loss(int64_t, double) override {
    if (progress) progress(++done, all);
  }
  void on_update(int, int64_t, const std::vector<double>&) override {}
  std::function<void(int64_t done, int64_t all)> progress;
  int64_t done = 0, all = 0;
};

}  // namespace

EvaluationResult evaluate_run(const TrainedModel& model, int64_t batches, const std::string& data,
                              const std::function<void(int64_t done, int64_t all)>& progress) {
  Config config = model.config;
  if (!data.empty()) {
    config.data.tokens = data;
    config.data.val_tokens.clear();
    config.data.source.clear();
    config.data.vocabulary = 0;                            // that of the run's tokens
    if (is_prepared(data)) config.data.tokenizer.clear();  // that of token files of other programs
  }
  if (!config.data.is_given()) {
    throw InputError("the run has no tokens of its own: its model was imported; give --data");
  }
  // Token files of other programs say neither their vocabulary nor their tokenizer: they are taken to be made with the
  // run's own.
  const auto open = data.empty() ? Dataset::open : Dataset::open_to_validate;
  const Dataset dataset = open(config.data, token_vocabulary(config.model));
  std::vector<DataPart> same;
  if (data.empty() || dataset.has_own_vocabulary()) same.push_back(DataPart::Tokenizer);
  if (data.empty()) same.push_back(DataPart::Val);
  if (!model.data.empty()) dataset.check_identity(model.data, same);
  resolve_vocabulary(config, dataset);
  const auto pipeline = build_evaluated_pipeline(config);
  pipeline->restore(model.checkpoint.weights, {}, 0);
  const ValidationBatches validation = validation_batches(config, dataset, batches > 0 ? batches : INT64_MAX);
  const BatchSource& source = *validation.source;
  const auto executor = make_executor(config.pipeline.executor);
  EvaluationResult result;
  result.step = model.checkpoint.step;
  result.tokens = validation.count * source.tokens_per_batch();
  LossCounter counter;
  counter.progress = progress;
  counter.all = validation.count;
  result.val_loss = evaluate(*pipeline, *executor, source, validation.count, 0, ModelWeights::Trained, &counter);
  const ModelKind& kind = model_kinds().at(config.model.kind);
  result.predicts_all_tokens = kind.continues_text;
  if (kind.sums_losses == nullptr || !kind.sums_losses(config.model)) result.perplexity = std::exp(result.val_loss);
  return result;
}

}  // namespace gyre
