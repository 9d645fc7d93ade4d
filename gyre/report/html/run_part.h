// What the report's page says of one run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gyre/report/trace_reader.h"

namespace gyre {

// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
struct RunPart {
  nlohmann::ordered_json page;
  std::optional<Trace> simulated;  // of the run's schedule with the costs that it measured
};

// Adds to `notes` what the run lacks. InputError for files that cannot be read.
RunPart run_part(const std::filesystem::path& run, const std::string& name, std::vector<std::string>& notes);

}  // namespace gyre
