// The ranks other than 0 of a run in several processes. Each builds its part of the pipeline and does what rank 0 tells
// it. Of checkpoints it writes its share, and nothing else.
#pragma once

#include "gyre/train/trainer.h"

namespace gyre {

// Throws what train() throws, or ToldElsewhere if rank 0 reports the error.
TrainResult train_as_follower(const TrainOptions& options);

}  // namespace gyre
