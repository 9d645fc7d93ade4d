#include "gyre/core/directories.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/output_file.h"
#include "gyre/core/utf8.h"

namespace gyre {

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to, FileSystem& files) {
  if (files.rename(from, to) == 0) return;
  throw_with_reason(fmt::format("{}: cannot be renamed to {}", from.string(), to.string()), to);
}

void sync_directory(const std::filesystem::path& directory, FileSystem& files) {
  const OutputFile opened(directory, O_RDONLY | O_DIRECTORY, files);
  // Some file systems (shared folders of VirtualBox, OrangeFS) cannot sync a directory, and say that it is no request.
  if (files.sync(opened.descriptor()) == 0 || errno == EINVAL) return;
  throw_with_reason(fmt::format("{}: cannot be synced", directory.string()), directory);
}

void make_directories(const std::filesystem::path& directory, FileSystem& files) {
  std::error_code ignored;
  if (std::filesystem::is_directory(directory, ignored)) return;
  const auto parent = directory.has_filename() ? directory.parent_path() : directory.parent_path().parent_path();
  if (!parent.empty()) make_directories(parent, files);
  if (files.make_directory(directory) != 0) {
    const std::string what =
        fmt::format("{}: cannot be created: {}; choose another place", directory.string(), reason_at(directory));
    const bool no_room = lacks_room();
    if (std::filesystem::is_directory(directory, ignored)) return;  // "a/." is "a"; or another process created it first
    if (no_room) throw NoRoom(what);
    throw InputError(what);
  }
  sync_directory(parent.empty() ? "." : parent, files);
}

void check_can_make(const std::filesystem::path& directory) {
  // The longest prefix of the path that exists.
  std::error_code ignored;
  std::filesystem::path existing = std::filesystem::absolute(directory, ignored);
  while (!std::filesystem::exists(std::filesystem::symlink_status(existing, ignored)) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  // The trailing slash makes access() fail for a file.
  if (::access((existing / "").c_str(), W_OK | X_OK) == 0) return;
  const std::string why = reason();
  throw InputError(fmt::format("{}: cannot be created: {}; choose another place", directory.string(), why));
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory, std::error_code& error) {
  // A range-for would throw where the next entry cannot be read.
  std::vector<std::filesystem::path> paths;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    paths.push_back(entry->path());
  }
  std::ranges::sort(paths);
  return paths;
}

void remove_tree(const std::filesystem::path& path, FileSystem& files) {
  std::error_code error;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, error))) {
    for (const auto& entry : entries_of(path, error)) remove_tree(entry, files);
  }
  files.remove(path);
}

std::filesystem::path name_beside(const std::filesystem::path& path, std::string_view before, std::string_view after) {
  constexpr size_t kMaxName = 255;  // bytes, on every file system of Linux but a few
  constexpr size_t kCutName = 128;
  std::string name = path.filename().string();
  if (before.size() + name.size() + after.size() > kMaxName) {
    name.resize(whole_characters(std::string_view(name).substr(0, kCutName)));
  }
  return path.parent_path() / fmt::format("{}{}{}", before, name, after);
}

DirectoryUnderConstruction::DirectoryUnderConstruction(std::filesystem::path path, FileSystem& files)
    : files_(files), path_(std::move(path)) {
  make_directories(path_, files_);
  lock_ = Descriptor(path_, O_RDONLY | O_DIRECTORY);
  if (!lock_.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path_.string(), reason()));
  if (try_lock(lock_.get(), files_) == Lock::Held) {
    throw InputError(fmt::format("{}: another process is writing here; wait for it", path_.string()));
  }
  std::error_code error;
  for (const auto& entry : entries_of(path_, error)) remove_tree(entry, files_);
}

DirectoryUnderConstruction::~DirectoryUnderConstruction() {
  remove_tree(path_, files_);
}

void DirectoryUnderConstruction::complete(const std::filesystem::path& target) {
  sync_directory(path_, files_);
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(target, ignored))) {
    replace(target);
  } else {
    rename_path(path_, target, files_);
    path_ = old_name();  // left by a crash between the two renames in replace()
  }
  sync_directory(target.has_parent_path() ? target.parent_path() : ".", files_);
}

std::filesystem::path DirectoryUnderConstruction::old_name() const {
  return name_beside(path_, "", ".old");
}

void DirectoryUnderConstruction::replace(const std::filesystem::path& target) {
  // Exchange in one step, so that a whole directory has the name at every moment. The old one then has the temporary
  // name, and the destructor removes it.
  if (files_.exchange(path_, target) == 0) return;
  const bool is_unsupported = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
  if (!is_unsupported) {
    throw_with_reason(fmt::format("{}: cannot take the place of {}", path_.string(), target.string()), target);
  }
  // NFS, CIFS and some FUSE file systems cannot exchange names. A crash between the two renames leaves nothing under
  // the target's name, and both directories whole beside it, the old one until the next complete(): either can be
  // renamed by hand. If it was a checkpoint, the previous one is used, as after any checkpoint that was not finished.
  const std::filesystem::path old = old_name();
  remove_tree(old, files_);
  rename_path(target, old, files_);
  try {
    rename_path(path_, target, files_);
  } catch (const RunError&) {
    files_.rename(old, target);
    throw;
  }
  path_ = old;
}

}  // namespace gyre
