// The flags by which gyre schedule and gyre simulate name a schedule.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "gyre/schedule/builders.h"

namespace gyre::app {

struct ScheduleFlags {
  std::string config;                      // a CONFIG.toml instead of flags
  std::vector<std::string> overrides;      // of the configuration
  ScheduleOptions options;                 // window 0: what suits the schedule
  int64_t microbatches = 0;                // 0: eight windows
  std::map<std::string, std::string> own;  // options of single schedules, by key: as given

  void add_to(CLI::App& command);
  // The schedule; afterwards `microbatches` and options.tb_over_tf are what they are for it.
  Schedule load();
};

}  // namespace gyre::app
