// What a worker's next action waits for.
#pragma once

#include <string>
#include <vector>

#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

struct Need {
  enum class What {
    Activation,    // of the stage below
    TiedWeight,    // as the pipeline's first stage read it
    Gradient,      // of the stage above
    FirstVersion,  // of the segment
    OutputRoom,    // on the link to the stage above
    DrainPoint,    // where the segment drains: until that is known, nothing is taken in
    Sums,          // of the window's gradients
    Norms,         // of other owners' gradients
    Version,       // which the window's update makes
    ReportRoom,    // on the link to the conductor
  };
  What what = What::ReportRoom;
  int worker = kNobody;  // the one other worker that it waits for
};

// "the activation of 1F17 from worker 1".
std::string describe(const Schedule& schedule, const Action& action, const Need& need);

// [shard]: the workers that own the stage.
std::vector<int> owners_of(const Schedule& schedule, int stage);

}  // namespace gyre
