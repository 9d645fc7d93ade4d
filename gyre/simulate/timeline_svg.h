// A schedule drawn as a picture: a row per worker, a box per action, time to the right.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// SVG of the restriction to `microbatches`; a backward takes `tb_over_tf` forwards. A box shows its microbatch's
// number; empty space is a worker that waits. A forward has the same width in every picture, unless the picture would
// be too wide, so that pictures can be compared.
std::string to_svg(const Schedule& schedule, int64_t microbatches, double tb_over_tf);

}  // namespace gyre
