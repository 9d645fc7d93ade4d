#include "gyre/schedule/load.h"

#include <fmt/format.h>

#include <filesystem>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre {
namespace {

// Of the longest schedule, with 32 bytes for each action.
constexpr uint64_t kMostOfSchedule = uint64_t{32} * kMostActions;

// Reads and validates a file. `tied` as in Schedule.
Schedule read_schedule(const std::string& name, bool tied) {
  const bool is_csv = std::filesystem::path(name).extension() == ".csv";
  std::string text = read_file(name, kMostOfSchedule);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  Schedule schedule = is_csv ? parse_csv(text, name) : parse_schedule(text, name);
  schedule.tied = tied;
  try {
    validate(schedule);
  } catch (const InvalidSchedule& invalid) {
    if (!invalid.worker()) throw InputError(fmt::format("{}: {}", name, invalid.fault()));
    const int line = is_csv ? *invalid.worker() + 1 : line_of_worker(text, *invalid.worker());
    throw InputError(fmt::format("{}:{}: {}", name, line, invalid.fault()));
  }
  return schedule;
}

}  // namespace

bool is_schedule_file(const std::string& name) {
  std::error_code none;
  return std::filesystem::is_regular_file(name, none);
}

Schedule load_schedule(const ScheduleOptions& options, bool check_sizes) {
  if (!is_schedule_file(options.name)) return make_schedule(options);
  Schedule schedule = read_schedule(options.name, options.tied);
  if (check_sizes && (schedule.stages != options.stages || schedule.window != options.window)) {
    throw InputError(fmt::format("{}: has {} and a window of {}; set stages = {} and accumulate = {}", options.name,
                                 counted(schedule.stages, "stage"), schedule.window, schedule.stages, schedule.window));
  }
  schedule = replicated(std::move(schedule), options);
  set_clip_scope(schedule, options.clip_scope);
  return schedule;
}

}  // namespace gyre
