#include "gyre/core/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/input_file.h"
#include "gyre/core/output_file.h"

namespace gyre {
namespace {

constexpr const char* kLockFile = ".lock";

[[noreturn]] void refuse_held(const std::filesystem::path& directory) {
  throw InputError(
      fmt::format("{}: another process is writing here; wait for it, or choose another --out", directory.string()));
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, FileSystem& files)
    : files_(files), directory_(directory) {
  const auto file = directory / kLockFile;
  std::error_code error;
  made_ = !std::filesystem::exists(directory, error);
  do {
    make_directories(directory, files);
    file_ = Descriptor(files.open(file, O_RDWR | O_CREAT, 0666));
    if (!file_.ok()) {
      const bool no_room = lacks_room();
      const std::string why = reason_at(file);
      // A lock file is left of an earlier process: what it wrote is to be continued, which is possible only here.
      const bool goes_on = std::filesystem::exists(file, error);
      const std::string what =
          fmt::format("{}: cannot be written to: {}; {}{}", directory.string(), why,
                      no_room ? "make room there" : "make it writable", goes_on ? "" : ", or choose another --out");
      if (no_room) throw NoRoom(what);
      throw InputError(what);
    }
    if (try_lock(file_.get(), files) == Lock::Held) refuse_held(directory);
  } while (!is_same_file(file_.get(), file));  // the previous holder removed the file in the meantime
}

void DirectoryLock::check_free(const std::filesystem::path& directory) {
  const Descriptor file(directory / kLockFile, O_RDWR);  // some network file systems lock only what may be written
  // A shared lock, so that two checks at a time do not take each other for the process that writes.
  if (file.ok() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_held(directory);
}

DirectoryLock::~DirectoryLock() {
  std::error_code error;
  const auto entries = entries_of(directory_, error);
  if (error || entries.size() != 1 || entries[0].filename() != kLockFile) return;
  files_.remove(directory_ / kLockFile);
  if (made_) files_.remove(directory_);
}

void DirectoryLock::leave_note(const std::string& note) {
  OutputFile file(directory_ / kLockFile, O_WRONLY | O_TRUNC, files_);
  file.write(note.data(), note.size());
  file.sync();
  file.close();
}

std::string DirectoryLock::note_in(const std::filesystem::path& directory) {
  std::error_code error;
  const auto file = directory / kLockFile;
  return std::filesystem::is_regular_file(file, error) ? read_file(file) : "";
}

}  // namespace gyre
