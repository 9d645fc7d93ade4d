#include "gyre/train/disk_room.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// Free bytes on the disk of `path`, which need not exist yet; empty if the system does not say.
std::optional<int64_t> free_bytes_at(std::filesystem::path path, FileSystem& files) {
  std::error_code none;
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path, none) && path.has_relative_path()) path = path.parent_path();
  const int64_t bytes = files.free_bytes(path);
  return bytes < 0 ? std::nullopt : std::optional(bytes);
}

}  // namespace

int64_t with_margin(int64_t bytes) {
  return bytes + bytes / 64 + (int64_t{1} << 20);
}

bool has_room(const RunDirectory& run, int64_t needed, FileSystem& files) {
  const auto free = free_bytes_at(run.checkpoints(), files);
  return !free || *free >= needed;
}

void check_room(const RunDirectory& run, int64_t needed, Retention retention, FileSystem& files) {
  // It may be a link to another disk, or belong to another user.
  if (is_there(run.checkpoints()) && ::access(run.checkpoints().c_str(), W_OK | X_OK) != 0) {
    throw InputError(
        fmt::format("{}: cannot be written to: {}; make it writable", run.checkpoints().string(), reason()));
  }
  const auto free = free_bytes_at(run.checkpoints(), files);
  const int64_t room = free.value_or(0) + room_to_make(run.checkpoints(), retention);
  if (!free || room >= needed) return;
  const auto [all, there] = distinct_bytes(static_cast<double>(needed), static_cast<double>(room));
  throw NoRoom(fmt::format("{}: a checkpoint needs {}, and {} are free there; free {} more, or choose another --out",
                           run.checkpoints().string(), all, there, human_bytes(static_cast<double>(needed - room))));
}

}  // namespace gyre
