// gyre eval: the validation loss of a trained run.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/inspect/trained_model.h"

namespace gyre {

struct EvaluationResult {
  int64_t step = 0;
  int64_t tokens = 0;
  double val_loss = 0;    // nats per token
  double perplexity = 0;  // exp(val_loss)
};

// Loss over `batches` microbatches of the run's validation tokens (0: all). `data` replaces the run's tokens, unless it
// is empty: a directory that gyre prepare made, or token files of other programs. Throws InputError if the tokens are
// not those that the run was begun with, or were made by another tokenizer.
EvaluationResult evaluate_run(const TrainedModel& model, int64_t batches, const std::string& data);

}  // namespace gyre
