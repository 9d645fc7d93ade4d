#include "gyre/inspect/trained_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/runtime/executor.h"
#include "gyre/train/evaluate.h"
#include "gyre/train/run_directory.h"

namespace gyre {

TrainedModel open_trained_model(const std::filesystem::path& directory, Work work, std::optional<int64_t> step) {
  const RunDirectory run(directory);
  TrainedModel model;
  model.config = run.load_config();
  model.tokenizer = load_tokenizer(run.tokenizer());
  model.data = DatasetMeta::load(run.tokenizer()).checksums;
  if (!step) step = latest_checkpoint(run.checkpoints());
  if (!step) {
    throw InputError(fmt::format("{}: has no checkpoint yet; train it until one is saved ([run] checkpoint_every)",
                                 directory.string()));
  }
  const auto steps = list_checkpoints(run.checkpoints());
  if (std::find(steps.begin(), steps.end(), *step) == steps.end()) {
    throw InputError(fmt::format("{}: has no checkpoint of step {}; there are: {}", directory.string(), *step,
                                 fmt::join(steps, ", ")));
  }
  check_memory(model.config, memory_limit(), work);
  model.checkpoint = load_checkpoint(run.checkpoints(), *step,
                                     work == Work::Diagnose ? CheckpointParts::All : CheckpointParts::WeightsOnly);
  check_model_identity(model.checkpoint.model, model.config);
  return model;
}

EvaluationResult evaluate_run(const TrainedModel& model, int64_t batches, const std::string& data) {
  Config config = model.config;
  if (!data.empty()) config.data.tokens = data;
  const Dataset dataset = Dataset::open(config.data.tokens);
  check_identity(
      model.data, dataset.meta().checksums, dataset.directory(),
      data.empty() ? std::vector<std::string>{kTokenizerFile, kValFile} : std::vector<std::string>{kTokenizerFile});
  resolve_vocabulary(config, dataset.vocabulary());
  const auto pipeline = build_pipeline(config);
  pipeline->restore(model.checkpoint.weights, {}, 0);  // no update follows
  const ValidationBatches validation = validation_batches(config, dataset);
  const BatchSource& source = *validation.source;
  const int64_t count = batches > 0 ? std::min(batches, validation.count) : validation.count;
  const auto executor = make_executor(config.pipeline.executor);
  EvaluationResult result;
  result.step = model.checkpoint.step;
  result.tokens = count * source.tokens_per_batch();
  result.val_loss = evaluate(*pipeline, *executor, source, count, 0);
  result.perplexity = std::exp(result.val_loss);
  return result;
}

}  // namespace gyre
