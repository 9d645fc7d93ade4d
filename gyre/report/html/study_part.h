// The part of the report's page about a study: its tables.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace gyre {

// The study's results; only its name if it has none yet. Throws InputError if they cannot be read.
nlohmann::ordered_json study_page(const std::filesystem::path& directory);

}  // namespace gyre
