// A lock that lets one process at a time write into a directory.
#pragma once

#include <filesystem>
#include <string>

#include "gyre/core/descriptor.h"
#include "gyre/core/file_system.h"

namespace gyre {

// Held while a process writes into a directory: a lock on a file in it, which the system releases when the process
// ends.
class DirectoryLock {
 public:
  // Creates the directory if it is missing. Throws InputError if another process holds the lock; where the file system
  // has no locks, the user must not run two at once. If nothing else is in the directory at the end, the lock file is
  // removed, and the directory too if this object created it. `files` must outlive it.
  explicit DirectoryLock(const std::filesystem::path& directory, FileSystem& files = system_files());
  ~DirectoryLock();
  // Throws the same InputError if another process holds the lock now. Changes nothing.
  static void check_free(const std::filesystem::path& directory);
  // Writes a note into the lock file, which other processes can read until another note replaces it or the lock file is
  // removed. Throws RunError on failure.
  void leave_note(const std::string& note);
  // The last note written; empty if there is none.
  static std::string note_in(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  FileSystem& files_;
  std::filesystem::path directory_;
  bool made_ = false;
  Descriptor file_;
};

}  // namespace gyre
