// The averages of a run's weights ([optimizer] ema_decay), as its checkpoints have them.
#pragma once

#include "gyre/checkpoint/checkpoint.h"

namespace gyre {

// Which of a run's weights: those that it trains, or their averages.
enum class ModelWeights { Trained, Ema };

// The averages by their weights' names, fp32. InputError where the checkpoint has none; DamagedCheckpoint.
NamedTensors read_averages(const CheckpointReader& checkpoint);

}  // namespace gyre
