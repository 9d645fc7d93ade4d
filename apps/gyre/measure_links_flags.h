// The command line of `gyre measure-links`, which `gyre launch` reads too, before it starts anything.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "meeting_flags.h"

namespace gyre::app {

struct MeasureLinksFlags {
  std::string out = "cluster.toml";
  MeetingFlags meeting;
};

// `flags` must outlive the parsing.
void declare_measure_links_flags(CLI::App& command, MeasureLinksFlags& flags);

}  // namespace gyre::app
