// GPipe (Huang et al., 2019): all forwards of a window, then all its backwards, then the update.
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  return flushed_pipeline(options, [](int stage, int64_t window, std::vector<Action>& actions) {
    for (int64_t m = 0; m < window; ++m) actions.push_back(forward(stage, m));
    // In ascending order, so that gradients are added in the order in which plain training adds them.
    for (int64_t m = 0; m < window; ++m) actions.push_back(backward(stage, m));
  });
}

}  // namespace

ScheduleKind gpipe() {
  return {.name = "gpipe",
          .meaning = "all forwards of a window, then all backwards",
          .build = build,
          .windows = flushing_windows};
}

}  // namespace gyre
