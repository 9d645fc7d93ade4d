// Directories and names in them, made and removed; and directories that are there as a whole or not at all.
#pragma once

#include <filesystem>

#include "gyre/core/file_system.h"

namespace gyre {

// RunError when it cannot be done; the old name stays then.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 FileSystem& files = system_files());

// Makes a rename or a new entry in `directory` durable.
void sync_directory(const std::filesystem::path& directory, FileSystem& files = system_files());

// The directory and those above it, where they are missing, each made durable. InputError with path and reason: what
// gets a directory made is a path that the user gave.
void make_directories(const std::filesystem::path& directory, FileSystem& files = system_files());

// InputError where it would surely fail, as far as can be told without trying: something above the directory is a file,
// or may not be written to.
void check_can_make(const std::filesystem::path& directory);

// A directory with all that is in it, or a file; links are not followed. What cannot be removed stays: for what is in
// nobody's way.
void remove_tree(const std::filesystem::path& path, FileSystem& files = system_files());

// A directory under construction, with a name of its own beside the one it is made for. It takes that name when it is
// complete; else it is removed.
class DirectoryUnderConstruction {
 public:
  // `path`: the temporary name. What an earlier process left there goes first. InputError when another process is
  // building there now.
  explicit DirectoryUnderConstruction(std::filesystem::path path, FileSystem& files = system_files());
  ~DirectoryUnderConstruction();
  DirectoryUnderConstruction(const DirectoryUnderConstruction&) = delete;
  DirectoryUnderConstruction& operator=(const DirectoryUnderConstruction&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Syncs it and gives it the name `target`, in place of what has that name; durable when this returns. RunError.
  void complete(const std::filesystem::path& target);

 private:
  void replace(const std::filesystem::path& target);
  std::filesystem::path old_name() const;  // of what is replaced where names cannot be exchanged

  FileSystem& files_;
  std::filesystem::path path_;  // what goes at the end
  int descriptor_;              // the directory, locked where the file system has locks
};

}  // namespace gyre
