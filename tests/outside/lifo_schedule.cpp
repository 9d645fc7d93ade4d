// "lifo": GPipe whose backwards begin with the last microbatch.
#include "gyre/schedule/builder_parts.h"
#include "outside/components.h"

namespace gyre::outside {
namespace {

struct LifoSettings {
  bool reversed = true;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("reversed", self.reversed, Range{}, "whether backwards begin with the last microbatch");
  }
  bool operator==(const LifoSettings&) const = default;
};

Schedule build(const ScheduleOptions& options) {
  check_length(options, flushed_actions);
  const bool reversed = options.own.get<LifoSettings>().reversed;
  Schedule schedule = one_pipeline(options);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[static_cast<size_t>(stage)].period;
    for (int64_t m = 0; m < schedule.window; ++m) period.push_back(forward(stage, m));
    for (int64_t m = 0; m < schedule.window; ++m) {
      period.push_back(backward(stage, reversed ? schedule.window - 1 - m : m));
    }
    period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace

void add_lifo() {
  schedule_kinds().add({.name = "lifo",
                        .meaning = "GPipe whose backwards begin with the last microbatch",
                        .build = build,
                        .windows = flushing_windows,
                        .own = LifoSettings()});
}

}  // namespace gyre::outside
