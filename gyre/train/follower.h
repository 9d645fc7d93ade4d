// A run in several processes, as the other ranks than 0 see it: they build their part of the pipeline, and do what rank
// 0 tells them. Of checkpoints they write their shares, and nothing else.
#pragma once

#include "gyre/train/trainer.h"

namespace gyre {

// Errors: as train()'s; ToldElsewhere where rank 0 tells.
TrainResult follow(const TrainOptions& options);

}  // namespace gyre
