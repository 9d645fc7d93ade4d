// How much of the workers' time a run will spend waiting, predicted before it runs.
#pragma once

#include <optional>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/model/layer.h"
#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// The bubble of the run, as a share of all workers' time: that of a segment whose length is the mean of those between
// the planned drains. This is the whole run's, since beyond filling and draining, time grows by the same with every
// update. Simulated, with the multiply-adds of every stage's passes and updates as its times and messages that take
// none. So it is that of workers with a core each. Empty if the simulation of enough microbatches would take too long.
std::optional<double> predict_bubble(const Config& config, const Schedule& schedule, const Layers& layers,
                                     const std::vector<LayerRange>& ranges);

}  // namespace gyre
