// The command line of `gyre train`, which `gyre launch` reads too, before it starts anything.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "meeting_flags.h"

namespace gyre::app {

struct TrainFlags {
  std::vector<std::string> inputs;  // CONFIG.toml; with --resume the run's directory, or both
  std::vector<std::string> overrides;
  std::string out;
  bool resume = false;
  bool check = false;
  std::string trace;
  MeetingFlags meeting;
  bool help_config = false;
  bool json = false;
};

// `flags` must outlive the parsing.
void declare_train_flags(CLI::App& command, TrainFlags& flags);

// What to train, and where. place_of() throws InputError.
struct TrainPlace {
  std::filesystem::path config;  // empty: the run's own
  std::filesystem::path out;
};
TrainPlace place_of(const TrainFlags& flags);

}  // namespace gyre::app
