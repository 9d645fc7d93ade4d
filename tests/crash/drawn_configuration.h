// Configurations drawn at random from all keys: small models, everything else as it comes.
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
  std::string schedule_file;                  // what the schedule's file holds, if it is one
  std::string refused;                        // why it contradicts itself, if that can be told without libtorch

  std::string toml() const;
};

// Keys that every configuration has alike, with their values. The others are drawn.
const std::map<std::string, std::string>& fixed_values();

DrawnConfiguration draw_configuration(RandomStream& random);

// The values of the keys that have few: "table.key" and what it may be, in TOML. Draws must meet them all.
std::map<std::string, std::vector<std::string>> enumerated_values();

}  // namespace gyre::crash
