// Reads the averages of a run's weights ([optimizer] ema_decay) from its checkpoints.
#pragma once

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/optim/weight_average.h"

namespace gyre {

// The averages by the names of their weights, in fp32, as CheckpointReader::map(). Throws InputError if the checkpoint
// has none, and DamagedCheckpoint.
NamedTensors map_averages(const CheckpointReader& checkpoint);

}  // namespace gyre
