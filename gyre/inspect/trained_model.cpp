#include "gyre/inspect/trained_model.h"

#include "gyre/build/model_identity.h"
#include "gyre/core/files.h"
#include "gyre/train/chosen_checkpoint.h"
#include "gyre/train/run_directory.h"

namespace gyre {

namespace {

CheckpointState read_checkpoint(const RunDirectory& run, int64_t step, const Config& config, Work work,
                                ModelWeights weights) {
  CheckpointState checkpoint = load_checkpoint(
      run.checkpoints(), step, work == Work::Diagnose ? CheckpointParts::All : CheckpointParts::MappedWeights);
  check_model_identity(checkpoint.model, config);
  if (weights == ModelWeights::Ema) {
    checkpoint.weights.clear();
    checkpoint.weights = map_averages(CheckpointReader(run.checkpoints(), step));
  }
  return checkpoint;
}

}  // namespace

TrainedModel open_trained_model(const std::filesystem::path& directory, Work work, std::optional<int64_t> step,
                                ModelWeights weights) {
  const RunDirectory run(directory);
  TrainedModel model;
  run.refuse_parts();
  model.config = run.load_config_of_model();
  // A model that was imported may have neither data nor tokenizer.
  if (model.config.data.is_given() || is_there(run.tokenizer() / kMetaFile)) {
    model.tokenizer = load_tokenizer(run.tokenizer());
    model.data = DatasetMeta::load(run.tokenizer()).checksums;
  }
  const int64_t chosen = choose_checkpoint(run, step);
  check_memory(model.config, memory_limit(), work);
  model.checkpoint = read_chosen(
      run, step, chosen, [&](int64_t there) { return read_checkpoint(run, there, model.config, work, weights); });
  return model;
}

}  // namespace gyre
