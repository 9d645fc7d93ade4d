// How much memory an optimizer keeps for its parameters, known before it is made.
#pragma once

#include <vector>

#include "gyre/optim/config.h"

namespace gyre {

// In bytes, from its construction on. What comes and goes (copies for a refresh in the background, weights of past
// updates) is not in it. A double: a wrong configuration's sizes fit no integer.
double optimizer_state_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs);

}  // namespace gyre
