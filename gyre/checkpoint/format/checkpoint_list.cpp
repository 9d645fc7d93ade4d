#include "gyre/checkpoint/format/checkpoint_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/input_file.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> step_of(const std::string& name) {
  if (name.rfind("step-", 0) != 0) return std::nullopt;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || name != checkpoint_name(step)) return std::nullopt;
  return step;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  return fmt::format("step-{:08}", step);
}

fs::path checkpoint_path(const fs::path& checkpoints, int64_t step) {
  return checkpoints / checkpoint_name(step);
}

std::vector<int64_t> list_checkpoints(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  if (!is_there(checkpoints)) return steps;
  std::error_code error;
  for (const fs::path& entry : entries_of(checkpoints, error)) {
    if (const auto step = step_of(entry.filename().string())) steps.push_back(*step);
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", checkpoints.string(), error.message()));
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> latest_checkpoint(const fs::path& checkpoints) {
  const auto steps = list_checkpoints(checkpoints);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

}  // namespace gyre
