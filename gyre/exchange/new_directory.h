// A directory that a command makes: complete under its name, or absent.
#pragma once

#include <filesystem>
#include <string>

#include "gyre/core/file_system.h"
#include "gyre/core/files.h"

namespace gyre {

class NewDirectory {
 public:
  // Builds beside `out`, under its name with `suffix`. Throws InputError if anything but an empty directory is at
  // `out`.
  NewDirectory(const std::filesystem::path& out, const std::string& suffix, FileSystem& files);
  const std::filesystem::path& path() const { return building_.path(); }
  // Gives the directory its name; durable when this returns. If it is not called, nothing stays. Throws RunError.
  void complete() { building_.complete(out_); }

 private:
  std::filesystem::path out_;
  DirectoryUnderConstruction building_;
};

}  // namespace gyre
