#include "gyre/inspect/trained_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gyre/build/model_identity.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/train/resume.h"
#include "gyre/train/run_directory.h"

namespace gyre {

TrainedModel open_trained_model(const std::filesystem::path& directory, Work work, std::optional<int64_t> step,
                                ModelWeights weights) {
  const RunDirectory run(directory);
  TrainedModel model;
  run.refuse_parts();
  model.config = run.load_config();
  // A model that was imported may have neither data nor tokenizer.
  if (model.config.data.is_given() || is_there(run.tokenizer() / kMetaFile)) {
    model.tokenizer = load_tokenizer(run.tokenizer());
    model.data = DatasetMeta::load(run.tokenizer()).checksums;
  }
  if (!step) step = latest_checkpoint(run.checkpoints());
  if (!step) {
    refuse_lost_checkpoints(run, read_record(run.metrics(), 0));
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
  if (weights == ModelWeights::Ema) {
    model.checkpoint.weights.clear();
    model.checkpoint.weights = read_averages(CheckpointReader(run.checkpoints(), *step));
  }
  return model;
}

}  // namespace gyre
