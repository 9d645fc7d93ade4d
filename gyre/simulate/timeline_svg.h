// A schedule drawn as a picture: a row per worker, a box per action, time to the right.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/schedule/schedule.h"

namespace gyre {

// SVG of the restriction to `microbatches`, a backward taking `tb_over_tf` forwards. A box has its microbatch's number;
// what stays empty is a worker that waits. A forward is as wide in every picture that is not too long for it, so that
// pictures compare.
std::string to_svg(const Schedule& schedule, int64_t microbatches, double tb_over_tf);

}  // namespace gyre
