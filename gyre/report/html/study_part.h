// The part of the report's page about a study: its tables, and which of its runs are shown.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace gyre {

// Whether a study is there: it has results, or runs that have begun.
bool is_study(const std::filesystem::path& directory);
// The study's results; only its name if it has none yet. Throws InputError if they cannot be read.
nlohmann::ordered_json study_page(const std::filesystem::path& directory);
// The directories of the study's runs, runs/ARM/lr0.001-seed1, without short trials of learning rates.
std::vector<std::filesystem::path> study_runs(const std::filesystem::path& directory);

}  // namespace gyre
