// Directories for the time that a process lives.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace gyre {

class Descriptor;

// A new directory that only this user may enter; it goes with the object.
class PrivateDirectory {
 public:
  // In `parent`, with a name that begins with `prefix`. RunError.
  PrivateDirectory(const std::filesystem::path& parent, const std::string& prefix);
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // It stays.
  void keep() { kept_ = true; }

  // Removes those of this user whose processes were killed before they could. Where the file system has no locks,
  // they stay.
  static void remove_abandoned(const std::filesystem::path& parent, const std::string& prefix);

 private:
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> lock_;  // held as long as this process lives
  bool kept_ = false;
};

}  // namespace gyre
