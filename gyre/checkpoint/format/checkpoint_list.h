// The directories of checkpoints: their names, and which there are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gyre {

// step-00000100
std::string checkpoint_name(int64_t step);
// The path that the checkpoint of a step has, or would have.
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, int64_t step);
// The steps of the checkpoints that exist, ascending; none if the directory does not. Throws InputError for a directory
// that cannot be read, and for a link that leads nowhere.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& checkpoints);
std::optional<int64_t> latest_checkpoint(const std::filesystem::path& checkpoints);

}  // namespace gyre
