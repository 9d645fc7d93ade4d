// Validation loss, computed by the pipeline itself: the same executor runs a forward-only schedule over the workers.
#pragma once

#include <cstdint>

#include "gyre/batches/batch.h"
#include "gyre/optim/weight_average.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// Mean loss over `microbatches` microbatches of `batches`. `updates`: made so far. Averages are there
// with RuntimeOptions::ema_decay. `watcher` hears of workers
// that take long, and looks at them.
double evaluate(Pipeline& pipeline, Executor& executor, const BatchSource& batches, int64_t microbatches,
                int64_t updates, ModelWeights weights = ModelWeights::Trained, SegmentObserver* watcher = nullptr);

}  // namespace gyre
