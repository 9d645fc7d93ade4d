#include "schedule_flags.h"

#include <fmt/format.h>

#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/load.h"
#include "number_flag.h"

namespace gyre::app {
namespace {

constexpr int64_t kDefaultWindows = 8;
constexpr int64_t kLongestDefaultWindow = 4096;  // a window's program is held in memory

// The longest window that divides the microbatches into equal ones.
int64_t dividing_window(int64_t microbatches, int64_t multiple_of) {
  for (int64_t window = std::min(microbatches, kLongestDefaultWindow); window > 1; --window) {
    if (microbatches % window == 0 && window % multiple_of == 0) return window;
  }
  return microbatches;
}

// Where no window is given: schedules with a flush take all microbatches into one, PipeDream and PACI update after
// each, the others take the shortest window that they are made for.
int64_t default_window(const ScheduleOptions& options, int64_t microbatches) {
  if (options.name == "pipedream" || options.name == "paci") return 1;
  if (options.name == "pipedream-2bw") return options.stages;
  if (options.name == "amdp") {
    const int pipelines = options.pipelines > 0 ? options.pipelines : (options.stages + 1) / 2;
    const int64_t block = static_cast<int64_t>(options.intake) * pipelines;
    return block;
  }
  if (microbatches > 0) {
    const int64_t round = options.name == "interleaved-1f1b" ? options.stages / std::max(1, options.chunks)
                          : options.name == "chimera"        ? 2
                                                             : 1;
    return dividing_window(microbatches, std::max<int64_t>(1, round));
  }
  return options.name == "interleaved-1f1b" ? options.stages / std::max(1, options.chunks) * 4LL : options.stages * 2LL;
}

}  // namespace

void ScheduleFlags::add_to(CLI::App& command) {
  command.add_option("config", config, "CONFIG.toml whose [pipeline] is meant, instead of the flags");
  command.add_option("--set", overrides, "Override a key of CONFIG.toml: table.key=value (repeatable)")
      ->allow_extra_args(false);
  options.window = 0;
  options.stages = 4;
  command.add_option("--schedule", options.name, "Name of a builtin (gyre info lists them), or a file");
  add_number(command, "--stages", options.stages, {1, kMostStages},
             "Stages of the model, one worker each (interleaved: see --chunks)");
  add_number(command, "--microbatches", microbatches, {0, kMostSteps}, "Microbatches of the run; 0: eight windows");
  add_number(command, "--window", options.window, {0, kMostWindow},
             "Microbatches of one update; 0: what suits the schedule");
  add_number(command, "--pipelines", options.pipelines, {0, kMostStages},
             "amdp: pipelines; 0: what the depth calls for");
  add_number(command, "--intake", options.intake, {1, kMostStages}, "amdp: microbatches a pipeline takes in at once");
  add_number(command, "--preload", options.preload, {-1, kMostWindow},
             "amdp: forwards before a block's last backward; -1: by the ratio");
  add_number(command, "--chunks", options.chunks, {1, kMostStages}, "interleaved-1f1b: stages on each worker");
  add_number(command, "--tb-over-tf", options.tb_over_tf, {1e-3, 1000}, "Time of a backward in forwards");
}

Schedule ScheduleFlags::load() {
  Schedule schedule;
  if (!config.empty()) {
    const Config loaded = load_config(config, overrides);
    options = schedule_options(loaded);
    schedule = build_schedule(loaded);
    schedule.weights = weight_policy(loaded, schedule);
  } else {
    if (!overrides.empty()) throw InputError("--set changes a CONFIG.toml, and none is given");
    options.names = {"--stages", "--window", "--chunks", "--pipelines", "--intake", "--tb-over-tf", "--preload"};
    if (options.window == 0) options.window = default_window(options, microbatches);
    schedule = load_schedule(options, false);
  }
  if (microbatches == 0) {
    microbatches = !is_schedule_file(options.name) && config.empty() && schedule.has_flush()
                       ? schedule.window
                       : kDefaultWindows * schedule.window;
  }
  return schedule;
}

}  // namespace gyre::app
