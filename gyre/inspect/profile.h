// Measures every layer of a configuration's model on this machine, for the planner.
#pragma once

#include <vector>

#include "gyre/config/config.h"
#include "gyre/plan/planner.h"

namespace gyre {

// One layer at a time, with one microbatch and the run's device, precision, threads and optimizer; layers with
// parameters of the same names and shapes are measured once. The configuration's vocabulary must be known.
std::vector<LayerProfile> profile_layers(const Config& config);

}  // namespace gyre
