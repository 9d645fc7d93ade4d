// The flags by which the processes of one run find each other, for every command that runs as several processes.
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

// `flags` must outlive the parsing.
void declare_meeting_flags(CLI::App& command, MeetingFlags& flags);

}  // namespace gyre::app
