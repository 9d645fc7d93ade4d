// The part of the report's page about one run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gyre/report/run_curves.h"
#include "gyre/report/trace_reader.h"

namespace gyre {

// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
struct RunPart {
  nlohmann::ordered_json page;
  std::optional<Trace> simulated;  // the run's schedule, simulated with the costs that the run measured
};

// curves: the run's. Adds to `notes` what the run lacks. Throws InputError for files that cannot be read.
RunPart run_part(const std::filesystem::path& run, const std::string& name, RunCurves curves,
                 std::vector<std::string>& notes);

}  // namespace gyre
