// Forward only: evaluation over the same workers.
#include "gyre/schedule/builder_parts.h"

namespace gyre {

Schedule build_forward_only(const ScheduleOptions& options) {
  Schedule schedule = one_pipeline(options, "forward-only");
  schedule.forward_only = true;
  for (int stage = 0; stage < schedule.stages; ++stage) schedule.programs[stage].period.push_back(forward(stage, 0));
  schedule.shift = 1;
  schedule.window = 1;
  return schedule;
}

}  // namespace gyre
