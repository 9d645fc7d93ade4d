// Creates, renames and removes directories and their entries; builds directories that appear whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "gyre/core/descriptor.h"
#include "gyre/core/file_system.h"

namespace gyre {

// Throws RunError on failure; the old name stays then.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 FileSystem& files = system_files());

// Makes a rename or a new entry in `directory` durable.
void sync_directory(const std::filesystem::path& directory, FileSystem& files = system_files());

// Creates the directory and its missing parents, each made durable. Throws InputError with path and reason, since the
// path comes from the user, or NoRoom.
void make_directories(const std::filesystem::path& directory, FileSystem& files = system_files());

// Throws InputError if make_directories would surely fail, as far as can be told without trying: something above the
// directory is a file, or is not writable.
void check_can_make(const std::filesystem::path& directory);

// What is in a directory, sorted. If it cannot be read, as a network's file system may refuse in the middle, `error`
// says why, and the entries may be incomplete.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory, std::error_code& error);

// Removes a file, or a directory with everything in it; links are not followed. Failures are ignored, so use it only
// where leftovers do no harm.
void remove_tree(const std::filesystem::path& path, FileSystem& files = system_files());

// The path of something temporary beside `path`: its name between `before` and `after`, which is cut if the whole would
// be longer than a name may be. The cut name is so much shorter that it cannot be the name of what is cut.
std::filesystem::path name_beside(const std::filesystem::path& path, std::string_view before, std::string_view after);

// A directory that is built under a temporary name. complete() gives it its final name; otherwise the destructor
// removes it.
class DirectoryUnderConstruction {
 public:
  // `path`: the temporary name. Removes what an earlier process left there. Throws InputError if another process is
  // building there now.
  explicit DirectoryUnderConstruction(std::filesystem::path path, FileSystem& files = system_files());
  ~DirectoryUnderConstruction();
  DirectoryUnderConstruction(const DirectoryUnderConstruction&) = delete;
  DirectoryUnderConstruction& operator=(const DirectoryUnderConstruction&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Syncs the directory and renames it to `target`, replacing what has that name; durable when this returns. Throws
  // RunError on failure.
  void complete(const std::filesystem::path& target);

 private:
  void replace(const std::filesystem::path& target);
  std::filesystem::path old_name() const;  // name for the replaced directory where names cannot be exchanged

  FileSystem& files_;
  std::filesystem::path path_;  // what the destructor removes
  Descriptor lock_;             // the open directory, locked where the file system has locks
};

}  // namespace gyre
