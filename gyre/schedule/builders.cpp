#include "gyre/schedule/builders.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/builder_parts.h"

namespace gyre {
namespace {

struct Builder {
  const char* name;
  Schedule (*build)(const ScheduleOptions&);
};
constexpr Builder kBuilders[] = {{"gpipe", build_gpipe}, {"1f1b", build_one_f_one_b}, {"pipedream", build_pipedream}};

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Builder& builder : kBuilders) names.emplace_back(builder.name);
  return names;
}

Schedule make_schedule(const ScheduleOptions& options) {
  for (const Builder& builder : kBuilders) {
    if (options.name == builder.name) return builder.build(options);
  }
  throw InputError(fmt::format("schedule '{}' is unknown, and no file of that name is there{}", options.name,
                               suggestion(options.name, schedule_names())));
}

Schedule one_pipeline(const ScheduleOptions& options, const std::string& name) {
  if (options.stages < 1)
    throw InputError(fmt::format("schedule {}: stages is {}; give at least 1", name, options.stages));
  if (options.window < 1) {
    throw InputError(fmt::format("schedule {}: the window is {} microbatches; give at least 1", name, options.window));
  }
  Schedule schedule;
  schedule.name = name;
  schedule.stages = options.stages;
  schedule.workers = options.stages;
  schedule.window = options.window;
  schedule.shift = options.window;
  schedule.placement.resize(1);
  for (int stage = 0; stage < options.stages; ++stage) {
    schedule.placement[0].push_back(stage);
    schedule.owner.push_back(stage);
  }
  schedule.programs.resize(static_cast<size_t>(options.stages));
  return schedule;
}

}  // namespace gyre
