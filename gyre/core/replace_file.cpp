#include "gyre/core/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "gyre/core/descriptor.h"
#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/output_file.h"

namespace gyre {

void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  write_new_file(temporary, content, files);
  try {
    rename_path(temporary, path, files);
  } catch (const RunError&) {
    files.remove(temporary);
    throw;
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".", files);
}

void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    OutputFile file(temporary, O_WRONLY | O_CREAT | O_TRUNC, files);
    file.write(content.data(), content.size());
    file.close();
    rename_path(temporary, path, files);
  } catch (const RunError&) {
    files.remove(temporary);
    throw;
  }
}

void check_writable(const std::filesystem::path& path, FileSystem& files) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    throw InputError(fmt::format("{}: cannot be written: it is a directory", path.string()));
  }
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  const int descriptor = files.open(temporary, O_WRONLY | O_CREAT, 0644);
  if (descriptor < 0) throw InputError(fmt::format("{}: cannot be written: {}", path.string(), reason()));
  files.close(descriptor);
  files.remove(temporary);
}

}  // namespace gyre
