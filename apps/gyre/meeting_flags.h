// The flags by which the processes of one run find each other, of every command that runs as several.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace gyre::app {

struct MeetingFlags {
  std::string interface;
  std::string job;
  int64_t meet_within = 120;  // seconds
};

// `flags` outlives the parsing.
void declare_meeting_flags(CLI::App& command, MeetingFlags& flags);

}  // namespace gyre::app
