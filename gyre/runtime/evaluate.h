// Validation loss, computed by the pipeline itself: the executor runs a forward-only schedule over the same workers.
#pragma once

#include <cstdint>
#include <stop_token>

#include "gyre/batches/batch.h"
#include "gyre/optim/weight_average.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// Mean loss over the first `microbatches` microbatches of `batches`. `updates`: updates made so far. ModelWeights::Ema
// needs RuntimeOptions::ema_decay. `watcher` is told of losses and of workers that take long, and gets looks at the
// workers if it asks for them. `stop`: the user wants the run to stop; an evaluation goes on to its end, unless a
// worker is stuck.
double evaluate(Pipeline& pipeline, Executor& executor, const BatchSource& batches, int64_t microbatches,
                int64_t updates, ModelWeights weights = ModelWeights::Trained, SegmentObserver* watcher = nullptr,
                std::stop_token stop = {});

}  // namespace gyre
