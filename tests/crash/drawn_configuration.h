// Configurations with all keys drawn at random; only the models are kept small.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gyre/core/random.h"

namespace gyre::crash {

// The files that a configuration may name, and the directory with the configuration, which its paths are relative to.
inline constexpr const char* kTokens[] = {"../tokens", "../more-tokens"};
inline constexpr const char* kScheduleText = "schedule.txt";
inline constexpr const char* kScheduleCsv = "schedule.csv";

struct DrawnConfiguration {
  std::map<std::string, std::string> values;  // by "table.key", in TOML
  std::string schedule_file;                  // the contents of the schedule file, if there is one
  std::string refused;                        // why it is contradictory, as far as this is known without libtorch

  std::string toml() const;
};

// The keys that have the same value in every configuration, with these values. All others are drawn.
const std::map<std::string, std::string>& fixed_values();

DrawnConfiguration draw_configuration(RandomStream& random);

// The possible values, in TOML, of each "table.key" that has only a few. The draws must produce all of them.
std::map<std::string, std::vector<std::string>> enumerated_values();

}  // namespace gyre::crash
