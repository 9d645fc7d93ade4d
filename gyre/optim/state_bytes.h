// How much memory an optimizer keeps for its parameters, known before it is made.
#pragma once

#include <vector>

#include "gyre/optim/config.h"

namespace gyre {

// In bytes, from its construction on. A double: a wrong configuration's sizes fit no integer.
double optimizer_state_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs);
// What comes and goes: bases of a refresh in the background and what they are made from, weights of past updates.
PassingBytes optimizer_passing_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs);
// What a step of them holds only while it is made. An estimate.
StepBytes optimizer_step_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                               const StepSetting& setting);

}  // namespace gyre
