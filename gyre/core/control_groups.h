// What Linux's /proc and /sys say of this process: its control groups (cgroups), and numbers in their files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

struct ControlGroup {
  std::filesystem::path directory;
  bool is_version_2;
};

// The groups whose limits of `controller` ("memory", "cpu") apply to this process: its own and all above it, in version
// 2 and version 1. `root` contains the /proc and /sys to read.
std::vector<ControlGroup> control_groups(const std::filesystem::path& root, std::string_view controller);

// The text of a file; empty if it cannot be read.
std::string read_or_empty(const std::filesystem::path& path);
// The number at the start of `text`, after blanks; empty if there is none, as in "max".
std::optional<double> leading_number(std::string_view text);

}  // namespace gyre
