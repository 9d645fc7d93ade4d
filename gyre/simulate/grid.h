// A schedule drawn in text: a row per worker, columns of time.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Draws the restriction to `microbatches`; a backward takes `tb_over_tf` forwards. Updates and adoptions take no time
// and are left out. An action's name is where it starts, '-' where it continues, '.' where the worker waits. Throws
// InputError if the grid would be too large.
std::string to_grid(const Schedule& schedule, int64_t microbatches, double tb_over_tf);

}  // namespace gyre
