// How the workers of replicas are numbered. Workers with neighbouring numbers share a process and a host. So the
// numbering decides which workers are near each other: those of one pipeline, which exchange microbatches, or the
// replicas of one stage, which exchange gradients and weights.
#pragma once

#include "gyre/schedule/schedule.h"

namespace gyre {

// The same schedule with the workers numbered stage by stage: worker w of replica r, which had number r * W + w (with W
// workers per replica), gets w * R + r. What is computed, and in which order, does not change.
Schedule numbered_by_stages(Schedule schedule, int replicas);

}  // namespace gyre
