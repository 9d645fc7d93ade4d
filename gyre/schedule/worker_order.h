// How the workers of replicas are numbered. Neighbouring numbers share a process and a host, so this decides whether
// those near each other are the workers of one pipeline, between whom microbatches pass, or the replicas of one stage,
// between whom gradients and weights do.
#pragma once

#include "gyre/schedule/schedule.h"

namespace gyre {

// The same schedule with the workers numbered stage by stage: number w of replica r of W workers, which was r * W + w,
// becomes w * R + r. What is computed, and in which order, stays.
Schedule numbered_by_stages(Schedule schedule, int replicas);

}  // namespace gyre
