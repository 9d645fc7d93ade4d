#include "gyre/schedule/validate.h"

#include <fmt/format.h>

#include <optional>

#include "gyre/schedule/limits.h"
#include "gyre/schedule/validate_checks.h"

namespace gyre {
namespace {

// Throws if too many actions would have to be walked to validate the schedule.
void check_length(const Schedule& schedule, int64_t microbatches) {
  if (count_actions(schedule, microbatches) <= kMostSteps) return;
  fail_validation(schedule,
                  fmt::format("the first {} microbatches have more than {} actions, too many to be checked; make the "
                              "programs shorter",
                              microbatches, kMostSteps));
}

}  // namespace

void validate(const Schedule& schedule, int64_t microbatches) {
  check_placement(schedule);
  check_programs(schedule);
  if (microbatches == 0) microbatches = representative_microbatches(schedule);
  check_length(schedule, microbatches);
  check_execution(schedule, microbatches);
}

void fail_validation(const Schedule& schedule, const std::string& what) {
  throw InvalidSchedule(schedule.name, what, std::nullopt);
}

void fail_validation(const Schedule& schedule, int worker, const Action& action, const std::string& what) {
  throw InvalidSchedule(
      schedule.name, fmt::format("{} on worker {}: {}", to_string(action, schedule.pipelines), worker, what), worker);
}

}  // namespace gyre
