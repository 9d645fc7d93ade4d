// The flags by which gyre schedule and gyre simulate select a schedule.
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
  int64_t microbatches = 0;                // 0: one window if it ends with a flush, else eight
  std::string clip_scope = "none";         // of the schedule that the flags name
  std::map<std::string, std::string> own;  // options of single schedules, by key, as given

  void add_to(CLI::App& command);
  // Returns the schedule, and sets `microbatches` and options.tb_over_tf to what they are for it. Throws InputError,
  // also for given flags that have no effect. times_by_ratio: the caller takes times from tb_over_tf.
  Schedule load(bool times_by_ratio);

 private:
  void refuse_without_effect(bool times_by_ratio) const;

  std::vector<const CLI::Option*> sizes_;   // for what a schedule file says itself
  std::vector<const CLI::Option*> others_;  // for what it does not say, but a configuration does
  const CLI::Option* ratio_ = nullptr;      // one of the others, by which a builtin may search for an order
};

}  // namespace gyre::app
