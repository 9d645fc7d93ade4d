// The part of the report's page about a trace.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gyre/report/trace_reader.h"

namespace gyre {

// Times are in microseconds from the trace's begin. Adds to `notes` if slices are left out.
nlohmann::ordered_json timeline_part(Trace trace, const std::string& name, bool is_simulated,
                                     std::vector<std::string>& notes);
// The same for a trace file. Throws InputError if it cannot be read or is not a trace.
nlohmann::ordered_json trace_part(const std::filesystem::path& trace, const std::string& name,
                                  std::vector<std::string>& notes);

}  // namespace gyre
