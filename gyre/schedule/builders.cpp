#include "gyre/schedule/builders.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"
#include "gyre/core/text.h"
#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/builtins.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/validate.h"

namespace gyre {
namespace {

std::vector<ScheduleKind> builtins() {
  std::vector<ScheduleKind> kinds = {
      gpipe(),   one_f_one_b(), interleaved(),   zb_h1(), zb_v(), dualpipe_v(),
      chimera(), pipedream(),   pipedream_2bw(), paci(),  amdp(),
  };
  for (ScheduleKind& kind : kinds) kind.is_builtin = true;
  return kinds;
}

// Of a kind that the program has added: nothing is known of its builder, and all that use schedules rely on their being
// valid.
Schedule build_and_validate(const ScheduleKind& kind, const ScheduleOptions& options) {
  check_options(options);
  Schedule schedule;
  try {
    schedule = kind.build(options);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw InputError(fmt::format("schedule {}: its builder has failed: {}", kind.name, error.what()));
  }
  schedule.name = kind.name;
  schedule.tied = options.tied;
  if (schedule.stages != options.stages || schedule.window != options.window || schedule.forward_only) {
    throw InputError(fmt::format(
        "schedule {}: its builder has made one {} of {} and a window of {}, and was asked for one of {} and {}",
        kind.name, schedule.forward_only ? "for evaluation" : "for training", counted(schedule.stages, "stage"),
        schedule.window, counted(options.stages, "stage"), options.window));
  }
  if (const int64_t each = stages_per_worker(kind, options.own); schedule.workers * each != schedule.stages) {
    throw InputError(fmt::format("schedule {}: its builder has made {} for {}, and its stages_per_worker is {}",
                                 kind.name, counted(schedule.workers, "worker"), counted(schedule.stages, "stage"),
                                 each));
  }
  validate(schedule);
  return schedule;
}

}  // namespace

Registry<ScheduleKind>& schedule_kinds() {
  static Registry<ScheduleKind> kinds("schedule", builtins());
  return kinds;
}

std::vector<std::string> schedule_names() {
  return schedule_kinds().names();
}

int64_t stages_per_worker(const ScheduleKind& kind, const OptionTable& own) {
  return kind.stages_per_worker == nullptr ? 1 : kind.stages_per_worker(own);
}

std::string schedules_with_stages_sharing_workers() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds().all()) {
    if (kind.stages_per_worker != nullptr) names.push_back(kind.name);
  }
  return join(names, ", ");
}

std::string OptionNames::of(std::string_view key) const {
  std::string name(key);
  if (!are_flags) return name;
  std::replace(name.begin(), name.end(), '_', '-');
  return fmt::format("--{}", name);
}

Schedule make_schedule(const ScheduleOptions& options) {
  if (const ScheduleKind* kind = schedule_kinds().find(options.name)) {
    Schedule schedule = kind->is_builtin ? kind->build(options) : build_and_validate(*kind, options);
    schedule.tied = options.tied;
    schedule = replicated(std::move(schedule), options);
    set_clip_scope(schedule, options.clip_scope);
    return schedule;
  }
  throw InputError(fmt::format("schedule {}", fault_of_schedule_name(options.name)));
}

std::string fault_of_schedule_name(const std::string& name) {
  if (schedule_kinds().find(name) != nullptr) return "";
  return fmt::format("'{}' is unknown, and no file of that name is there{}", printable(name),
                     suggestion(name, schedule_names()));
}

void check_options(const ScheduleOptions& options) {
  const auto check = [&](const std::string& what, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return;
    throw InputError(fmt::format("schedule {}: {} is {}; give {} to {}", options.name, what, value, least, most));
  };
  check(options.names.replicas, options.replicas, 1, kMostStages);
  check(options.names.stages, options.stages, 1, kMostStages / options.replicas);
  check(options.names.window, options.window, 1, kMostWindow / options.replicas);
  check_range(fmt::format("schedule {}: {}", options.name, options.names.tb_over_tf), options.tb_over_tf,
              between(kLeastRatio, kMostRatio));
  options.own.each_option([&](const char* key, const auto& value, const Range& range, const char*) {
    check_range(fmt::format("schedule {}: {}", options.name, options.names.of(key)), value, range);
  });
}

SuitableWindows flushing_windows(const ScheduleOptions& options) {
  return {.usual = 2LL * options.stages, .takes_all = true};
}

int64_t most_actions(const ScheduleOptions& options) {
  return kMostActions / options.replicas;
}

std::string or_fewer_replicas(const ScheduleOptions& options) {
  return options.replicas == 1 ? "" : fmt::format(", or {} smaller", options.names.replicas);
}

void check_length(const ScheduleOptions& options, CountActions count, int64_t least_window) {
  check_options(options);
  if (options.window < least_window) {
    throw InputError(fmt::format("schedule {}: a window of {} is too short for {}; make {} at least {}", options.name,
                                 counted(options.window, "microbatch"), counted(options.stages, "stage"),
                                 options.names.window, least_window));
  }
  const int64_t actions = count(options.stages, options.window);
  const int64_t most = most_actions(options);
  if (actions <= most) return;
  int64_t fitting = 0;  // the longest window that fits, by bisection, since the count grows with it
  for (int64_t too_long = options.window; too_long - fitting > 1;) {
    const int64_t middle = fitting + (too_long - fitting) / 2;
    (count(options.stages, middle) <= most ? fitting : too_long) = middle;
  }
  throw InputError(
      fmt::format("schedule {}: {} and a window of {} make programs of {} actions{}, and at most {} are held "
                  "in memory; make {}{}",
                  options.name, counted(options.stages, "stage"), counted(options.window, "microbatch"), actions,
                  options.replicas == 1 ? "" : fmt::format(" in each of {} replicas", options.replicas), kMostActions,
                  fitting >= least_window ? fmt::format("{} at most {}", options.names.window, fitting)
                                          : options.names.stages + " smaller",
                  or_fewer_replicas(options)));
}

Schedule one_pipeline(const ScheduleOptions& options) {
  Schedule schedule;
  schedule.name = options.name;
  schedule.stages = options.stages;
  schedule.workers = options.stages;
  schedule.window = options.window;
  schedule.shift = options.window;
  schedule.placement.resize(1);
  for (int stage = 0; stage < options.stages; ++stage) schedule.placement[0].push_back(stage);
  schedule.owner = schedule.placement;
  schedule.programs.resize(static_cast<size_t>(options.stages));
  return schedule;
}

Schedule flushed_pipeline(const ScheduleOptions& options, const WindowWork& work) {
  check_length(options, flushed_actions);
  Schedule schedule = one_pipeline(options);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& period = schedule.programs[stage].period;
    period.reserve(static_cast<size_t>(2 * schedule.window + 1));
    work(stage, schedule.window, period);
    period.push_back(update(stage, 0));
  }
  return schedule;
}

}  // namespace gyre
