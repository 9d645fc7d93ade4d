// The averages of a run's weights ([optimizer] ema_decay), as its checkpoints have them.
#pragma once

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/optim/weight_average.h"

namespace gyre {

// The averages by their weights' names, fp32. InputError where the checkpoint has none; DamagedCheckpoint.
NamedTensors read_averages(const CheckpointReader& checkpoint);

}  // namespace gyre
