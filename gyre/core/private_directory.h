// Temporary directories that are removed with the process that made them.
#pragma once

#include <filesystem>
#include <string>

#include "gyre/core/descriptor.h"

namespace gyre {

// A new directory that only this user may enter. The destructor removes it.
class PrivateDirectory {
 public:
  // In `parent`, with a name that begins with `prefix`. Throws RunError, for a full disk NoRoom.
  PrivateDirectory(const std::filesystem::path& parent, const std::string& prefix);
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // The destructor leaves it.
  void keep() { kept_ = true; }

  // Removes this user's directories whose processes were killed before they could remove them. On a file system
  // without locks they stay.
  static void remove_abandoned(const std::filesystem::path& parent, const std::string& prefix);

 private:
  std::filesystem::path path_;
  Descriptor lock_;  // held as long as this process lives
  bool kept_ = false;
};

}  // namespace gyre
