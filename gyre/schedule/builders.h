// Builders: one small file each, found by name.
#pragma once

#include <string>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

struct ScheduleOptions {
  std::string name = "pipedream";  // one of schedule_names()
  int stages = 1;
  int64_t window = 1;  // microbatches per update
};

// Errors: InputError for an unknown name (suggests the nearest) or for options the schedule cannot serve.
Schedule make_schedule(const ScheduleOptions& options);
std::vector<std::string> schedule_names();

Schedule build_gpipe(const ScheduleOptions& options);         // gpipe.cpp
Schedule build_one_f_one_b(const ScheduleOptions& options);   // one_f_one_b.cpp
Schedule build_pipedream(const ScheduleOptions& options);     // pipedream.cpp
Schedule build_forward_only(const ScheduleOptions& options);  // forward_only.cpp: evaluation

}  // namespace gyre
