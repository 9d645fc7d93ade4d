#include "gyre/schedule/load.h"

#include <fmt/format.h>

#include <filesystem>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/data_parallel.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre {

bool is_schedule_file(const std::string& name) {
  std::error_code none;
  return std::filesystem::is_regular_file(name, none);
}

Schedule load_schedule(const ScheduleOptions& options, bool check_sizes) {
  const std::filesystem::path path = options.name;
  if (!is_schedule_file(options.name)) return make_schedule(options);
  Schedule schedule = path.extension() == ".csv" ? parse_csv(read_file(path), options.name)
                                                 : parse_schedule(read_file(path), options.name);
  schedule.tied = options.tied;
  validate(schedule);
  if (check_sizes && (schedule.stages != options.stages || schedule.window != options.window)) {
    throw InputError(fmt::format("{}: has {} and a window of {}, not {} and {}", options.name,
                                 counted(schedule.stages, "stage"), schedule.window, options.stages, options.window));
  }
  return replicated(std::move(schedule), options);
}

}  // namespace gyre
