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
constexpr Builder kBuilders[] = {
    {"gpipe", build_gpipe},
    {"1f1b", build_one_f_one_b},
    {"interleaved-1f1b", build_interleaved},
    {"zb-h1", build_zb_h1},
    {"chimera", build_chimera},
    {"pipedream", build_pipedream},
    {"pipedream-2bw", build_pipedream_2bw},
    {"paci", build_paci},
    {"amdp", build_amdp},
};

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

void check_options(const ScheduleOptions& options, const std::string& name) {
  const auto at_least_one = [&](const char* what, int64_t value) {
    if (value < 1) throw InputError(fmt::format("schedule {}: {} is {}; give at least 1", name, what, value));
  };
  at_least_one("stages", options.stages);
  at_least_one("window", options.window);
  at_least_one("chunks", options.chunks);
  at_least_one("intake", options.intake);
  if (options.pipelines < 0) {
    throw InputError(fmt::format("schedule {}: pipelines is {}; give 1 or more, or 0 for what the depth calls for",
                                 name, options.pipelines));
  }
  if (!(options.tb_over_tf > 0 && options.tb_over_tf <= 1000)) {
    throw InputError(
        fmt::format("schedule {}: a backward cannot take {} times a forward; give a ratio above 0, to 1000", name,
                    options.tb_over_tf));
  }
}

Schedule one_pipeline(const ScheduleOptions& options, const std::string& name) {
  check_options(options, name);
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
