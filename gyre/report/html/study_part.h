// What the report's page says of a study: its tables, and which of its runs' curves are laid over each other.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace gyre {

// Its results; of a study that has none yet its name alone. InputError where they cannot be read.
nlohmann::ordered_json study_page(const std::filesystem::path& directory);
// runs/ARM/lr0.001-seed1 of those that count; trials of learning rates do not.
std::vector<std::filesystem::path> study_runs(const std::filesystem::path& directory);

}  // namespace gyre
