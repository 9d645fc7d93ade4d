// The command line of `gyre train`, which `gyre launch` reads too, before it starts anything.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gyre::app {

struct TrainFlags {
  std::vector<std::string> inputs;  // CONFIG.toml; with --resume the run's directory, or both
  std::vector<std::string> overrides;
  std::string out;
  bool resume = false;
  bool check = false;
  std::string trace;
  std::string interface;
  std::string job;
  int64_t meet_within = 120;  // seconds
  bool help_config = false;
  bool json = false;
};

// `flags` outlives the parsing.
void declare_train_flags(CLI::App& command, TrainFlags& flags);

// What is trained, and where. Errors: InputError.
struct TrainPlace {
  std::filesystem::path config;  // empty: the run's own
  std::filesystem::path out;
};
TrainPlace place_of(const TrainFlags& flags);

}  // namespace gyre::app
