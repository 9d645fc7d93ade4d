// ZB-H1 (Qi et al., 2023, "Zero bubble pipeline parallelism", handcrafted schedule 1): 1F1B with the backward split.
// The input half I keeps the pipeline moving; the weight half W fills what would be a bubble. Stage k delays its W by k
// microbatches, so that every stage holds as many activations as the first stage of 1F1B.
#include <algorithm>

#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  check_length(options, [](int64_t stages, int64_t window) { return stages * (3 * window + 1); });
  Schedule schedule = one_pipeline(options);
  const int64_t window = schedule.window;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[stage].period;
    period.reserve(static_cast<size_t>(3 * window + 1));
    const int64_t ahead = std::min<int64_t>(schedule.stages - 1 - stage, window);
    for (int64_t m = 0; m < ahead; ++m) period.push_back(forward(stage, m));
    for (int64_t m = 0; m < window; ++m) {
      if (ahead + m < window) period.push_back(forward(stage, ahead + m));
      period.push_back(backward_input(stage, m));
      if (m >= stage) period.push_back(backward_weights(stage, m - stage));
    }
    for (int64_t m = std::max<int64_t>(window - stage, 0); m < window; ++m) {
      period.push_back(backward_weights(stage, m));
    }
    period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace

ScheduleKind zb_h1() {
  return {.name = "zb-h1",
          .meaning = "1F1B with split backwards: the gradients of weights wait, and fill two thirds of the bubble",
          .build = build,
          .windows = flushing_windows};
}

}  // namespace gyre
