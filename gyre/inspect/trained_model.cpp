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

namespace {

int64_t newest_step(const RunDirectory& run) {
  if (const auto step = latest_checkpoint(run.checkpoints())) return *step;
  refuse_lost_checkpoints(run, read_record(run.metrics(), 0));
  throw InputError(fmt::format("{}: has no checkpoint yet; train it until one is saved ([run] checkpoint_every)",
                               run.root().string()));
}

void check_has(const RunDirectory& run, int64_t step) {
  const auto steps = list_checkpoints(run.checkpoints());
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return;
  throw InputError(fmt::format("{}: has no checkpoint of step {}; there are: {}", run.root().string(), step,
                               fmt::join(steps, ", ")));
}

CheckpointState read_checkpoint(const RunDirectory& run, int64_t step, const Config& config, Work work,
                                ModelWeights weights) {
  CheckpointState checkpoint = load_checkpoint(
      run.checkpoints(), step, work == Work::Diagnose ? CheckpointParts::All : CheckpointParts::WeightsOnly);
  check_model_identity(checkpoint.model, config);
  if (weights == ModelWeights::Ema) {
    checkpoint.weights.clear();
    checkpoint.weights = read_averages(CheckpointReader(run.checkpoints(), step));
  }
  return checkpoint;
}

// step: the newest. A run that trains meanwhile may remove it; then there is a newer one.
CheckpointState read_newest_checkpoint(const RunDirectory& run, int64_t step, const Config& config, Work work,
                                       ModelWeights weights) {
  for (;;) {
    try {
      return read_checkpoint(run, step, config, work, weights);
    } catch (const Error&) {
      const int64_t newest = newest_step(run);
      if (newest == step) throw;
      step = newest;
    }
  }
}

}  // namespace

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
  const int64_t newest = newest_step(run);
  if (step) check_has(run, *step);
  check_memory(model.config, memory_limit(), work);
  model.checkpoint = step ? read_checkpoint(run, *step, model.config, work, weights)
                          : read_newest_checkpoint(run, newest, model.config, work, weights);
  return model;
}

}  // namespace gyre
