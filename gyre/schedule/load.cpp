#include "gyre/schedule/load.h"

#include <fmt/format.h>

#include <filesystem>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre {

namespace {

// Of the longest schedule, with 32 bytes for each action.
constexpr uint64_t kMostOfSchedule = uint64_t{32} * kMostActions;

}  // namespace

bool is_schedule_file(const std::string& name) {
  std::error_code none;
  return std::filesystem::is_regular_file(name, none);
}

Schedule load_schedule(const ScheduleOptions& options, bool check_sizes) {
  const std::filesystem::path path = options.name;
  if (!is_schedule_file(options.name)) return make_schedule(options);
  const std::string text = read_file(path, kMostOfSchedule);
  Schedule schedule = path.extension() == ".csv" ? parse_csv(text, options.name) : parse_schedule(text, options.name);
  schedule.tied = options.tied;
  validate(schedule);
  if (check_sizes && (schedule.stages != options.stages || schedule.window != options.window)) {
    throw InputError(fmt::format("{}: has {} and a window of {}, not {} and {}", options.name,
                                 counted(schedule.stages, "stage"), schedule.window, options.stages, options.window));
  }
  return replicated(std::move(schedule), options);
}

}  // namespace gyre
