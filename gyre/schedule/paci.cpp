// PACI (arXiv 2606.07881): PipeDream's order with an update after every window of `a` backwards and no stash. A forward
// is admitted while fewer than P-k microbatches are in flight at stage k, which is PipeDream's order; the weights drift
// by at most ceil((P-1-k)/a) updates between a forward and its backward.
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  Schedule schedule = pipedream().build(options);
  schedule.weights = WeightPolicy::Latest;
  return schedule;
}

}  // namespace

ScheduleKind paci() {
  return {.name = "paci",
          .meaning = "PipeDream without stored versions: backwards read the newest weights",
          .build = build,
          .windows = [](const ScheduleOptions&) { return SuitableWindows{}; }};
}

}  // namespace gyre
