// Validation loss, computed by the pipeline itself: the same executor runs a forward-only schedule over the workers.
#pragma once

#include <cstdint>

#include "gyre/data/batch.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

// Mean loss over `microbatches` microbatches of `batches`, in the current weights. `updates`: made so far.
double evaluate(Pipeline& pipeline, Executor& executor, const BatchSource& batches, int64_t microbatches,
                int64_t updates);

}  // namespace gyre
