#include "gyre/core/control_groups.h"

#include <algorithm>
#include <charconv>

#include "gyre/core/error.h"
#include "gyre/core/input_file.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// `text` up to the next `separator`, which is removed from it too.
std::string_view take_until(char separator, std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// Whether the list "cpu,cpuacct" has `name`.
bool has_controller(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    if (take_until(',', list) == name) return true;
  }
  return false;
}

}  // namespace

std::vector<ControlGroup> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<ControlGroup> groups;
  const std::string text = read_or_empty(root / "proc/self/cgroup");
  for (std::string_view lines = text; !lines.empty();) {
    // Version 2: "0::/path". Version 1: "5:cpu,cpuacct:/path".
    std::string_view path = take_until('\n', lines);
    const std::string_view number = take_until(':', path), controllers = take_until(':', path);
    const bool is_version_2 = number == "0" && controllers.empty();
    if (path.empty() || (!is_version_2 && !has_controller(controllers, controller))) continue;
    const fs::path mount = root / "sys/fs/cgroup" / (is_version_2 ? "" : controller);
    for (fs::path group = fs::path(path).relative_path();; group = group.parent_path()) {
      groups.push_back({mount / group, is_version_2});
      if (group.empty()) break;
    }
  }
  return groups;
}

std::string read_or_empty(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const InputError&) {
    return "";
  }
}

std::optional<double> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

}  // namespace gyre
