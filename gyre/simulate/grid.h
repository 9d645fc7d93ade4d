// A schedule drawn in text: a row per worker, columns of time.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// The restriction to `microbatches`, a backward taking `tb_over_tf` forwards. Updates and adoptions take no time and
// are left out. An action's name stands where it starts, '-' where it goes on, '.' where the worker waits.
std::string to_grid(const Schedule& schedule, int64_t microbatches, double tb_over_tf);

}  // namespace gyre
