// Proves that a schedule can be executed.
#pragma once

#include <cstdint>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Proves for the restriction to `microbatches` (0: the prologues and enough repetitions that the rest follows): every
// action exactly once and on the worker its placement says, dependencies met, no cycle across workers (so no deadlock),
// every gradient in exactly one update, updates in order, activations bounded. Throws InputError naming the first
// offending action, what it needs, and a grid of the actions around it.
void validate(const Schedule& schedule, int64_t microbatches = 0);

}  // namespace gyre
