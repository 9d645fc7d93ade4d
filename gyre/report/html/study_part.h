// What the report's page says of a study: its tables, and which of its runs' curves are laid over each other.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace gyre {

struct StudyPart {
  nlohmann::ordered_json page;
  std::vector<std::filesystem::path> runs;  // those that count; trials of learning rates do not
};

// `directory` has results.json. InputError where it cannot be read.
StudyPart study_part(const std::filesystem::path& directory);

}  // namespace gyre
