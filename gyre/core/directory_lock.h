// Directories into which one process writes at a time.
#pragma once

#include <filesystem>
#include <string>

#include "gyre/core/file_system.h"

namespace gyre {

// Held while a process writes into a directory: a lock on a file in it, which the system lets go of with the process.
class DirectoryLock {
 public:
  // Creates the directory if need be. InputError when another process holds it; where the file system has
  // no locks, two at once are the user's to avoid. If nothing else is in the directory at
  // the end, nothing is left of the lock, nor of a directory that it has made. `files` outlives it.
  explicit DirectoryLock(const std::filesystem::path& directory, FileSystem& files = system_files());
  ~DirectoryLock();
  // Says something to other processes that look, for as long as it is held or a later one says something else.
  // RunError.
  void leave_note(const std::string& note);
  // What was last said; empty where nothing was.
  static std::string note_in(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  FileSystem& files_;
  std::filesystem::path directory_;
  bool made_ = false;
  int descriptor_ = -1;
};

}  // namespace gyre
