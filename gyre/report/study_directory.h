// The directory of a study, as gyre study makes it: whether one is there, and where its runs are.
#pragma once

#include <filesystem>
#include <vector>

namespace gyre {

// Whether a study is there: it has results, or runs that have begun.
bool is_study(const std::filesystem::path& directory);
// The directories of the study's runs, runs/ARM/lr0.001-seed1, without short trials of learning rates.
std::vector<std::filesystem::path> study_runs(const std::filesystem::path& directory);

}  // namespace gyre
