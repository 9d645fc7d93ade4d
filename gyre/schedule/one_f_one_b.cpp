// 1F1B with a flush (DAPPLE; Megatron-LM's non-interleaved schedule): GPipe's result with fewer activations in flight.
#include <algorithm>

#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

Schedule build(const ScheduleOptions& options) {
  check_length(options, flushed_actions);
  Schedule schedule = one_pipeline(options);
  const int64_t window = schedule.window;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[stage].period;
    period.reserve(static_cast<size_t>(2 * window + 1));
    // Stage k runs ahead by as many forwards as there are stages behind it.
    const int64_t ahead = std::min<int64_t>(schedule.stages - 1 - stage, window);
    for (int64_t m = 0; m < ahead; ++m) period.push_back(forward(stage, m));
    for (int64_t m = ahead; m < window; ++m) {
      period.push_back(forward(stage, m));
      period.push_back(backward(stage, m - ahead));
    }
    for (int64_t m = window - ahead; m < window; ++m) period.push_back(backward(stage, m));
    period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace

ScheduleKind one_f_one_b() {
  return {.name = "1f1b",
          .meaning = "alternates forwards and backwards once the pipeline is full; with a flush",
          .build = build,
          .windows = flushing_windows};
}

Schedule build_one_window(int stages, int64_t microbatches) {
  return build({.name = one_f_one_b().name, .stages = stages, .window = microbatches});
}

}  // namespace gyre
