#include "gyre/core/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace gyre {
namespace {

class SystemFiles final : public FileSystem {
 public:
  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    return ::open(path.c_str(), flags | O_CLOEXEC, mode);
  }
  ssize_t write(int descriptor, const void* data, size_t bytes) override { return ::write(descriptor, data, bytes); }
  ssize_t write_at(int descriptor, const void* data, size_t bytes, off_t offset) override {
    return ::pwrite(descriptor, data, bytes, offset);
  }
  int truncate(int descriptor, off_t bytes) override { return ::ftruncate(descriptor, bytes); }
  int change_mode(int descriptor, mode_t mode) override { return ::fchmod(descriptor, mode); }
  int sync(int descriptor) override { return ::fsync(descriptor); }
  int close(int descriptor) override { return ::close(descriptor); }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return ::rename(from.c_str(), to.c_str());
  }
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override {
    return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  }
  int make_directory(const std::filesystem::path& path) override { return ::mkdir(path.c_str(), 0777); }
  int lock(int descriptor) override { return ::flock(descriptor, LOCK_EX | LOCK_NB); }
  int remove(const std::filesystem::path& path) override {
    if (::unlink(path.c_str()) == 0) return 0;
    return errno == EISDIR ? ::rmdir(path.c_str()) : -1;
  }
  int64_t free_bytes(const std::filesystem::path& path) override {
    struct statvfs status {};
    // File systems that report no blocks (some network ones) do not know.
    if (::statvfs(path.c_str(), &status) != 0 || status.f_blocks == 0) return -1;
    return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
  }
};

}  // namespace

FileSystem& system_files() {
  static SystemFiles files;
  return files;
}

}  // namespace gyre
