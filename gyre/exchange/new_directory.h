// A directory that a command makes: whole under the name it was given, or not there.
#pragma once

#include <filesystem>
#include <string>

#include "gyre/core/file_system.h"
#include "gyre/core/files.h"

namespace gyre {

class NewDirectory {
 public:
  // Builds beside `out`, under its name and `suffix`. InputError where something is at `out` already, other than an
  // empty directory.
  NewDirectory(const std::filesystem::path& out, const std::string& suffix, FileSystem& files);
  const std::filesystem::path& path() const { return building_.path(); }
  // Gives it the name; durable when it returns. Not called: nothing stays. RunError.
  void complete() { building_.complete(out_); }

 private:
  std::filesystem::path out_;
  DirectoryUnderConstruction building_;
};

}  // namespace gyre
