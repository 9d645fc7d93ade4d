// gyre eval: the validation loss of a trained run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gyre/inspect/trained_model.h"

namespace gyre {

struct EvaluationResult {
  int64_t step = 0;
  int64_t tokens = 0;                // that were read
  bool predicts_all_tokens = false;  // false: the loss is the mean over some of them, as BERT's over those masked
  double val_loss = 0;               // nats per token predicted
  std::optional<double> perplexity;  // exp(val_loss); empty if the loss is the sum of several
};

// Loss over `batches` microbatches of the run's validation tokens (0: all). `data` replaces the run's tokens, unless it
// is empty: a directory that gyre prepare made, or token files of other programs, which are all read unless some of
// them are for validation by their names. `progress`, if there is one, is told after each microbatch how many of all
// are done. Throws InputError if the tokens are not those that the run was begun with, or were made by another
// tokenizer.
EvaluationResult evaluate_run(const TrainedModel& model, int64_t batches, const std::string& data,
                              const std::function<void(int64_t done, int64_t all)>& progress = {});

}  // namespace gyre
