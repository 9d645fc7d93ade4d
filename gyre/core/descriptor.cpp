#include "gyre/core/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Whether new files are what the file system has no room for. One that makes inodes as it needs them reports none.
bool lacks_inodes_only(const std::filesystem::path& path) {
  struct statvfs status {};
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  if (::statvfs(path.c_str(), &status) != 0 && ::statvfs(parent.c_str(), &status) != 0) return false;
  return status.f_files > 0 && status.f_favail == 0 && status.f_bavail > 0;
}

}  // namespace

Lock try_lock(int descriptor, FileSystem& files) {
  if (files.lock(descriptor) == 0) return Lock::Taken;
  return errno == EWOULDBLOCK ? Lock::Held : Lock::Unsupported;
}

std::string reason() {
  const int error = errno;
  return std::strerror(error) + std::string(error == EMFILE ? "; raise the limit (ulimit -n)" : "");
}

std::string reason_at(const std::filesystem::path& path) {
  const int error = errno;
  const bool is_of_inodes = error == ENOSPC && lacks_inodes_only(path);
  errno = error;
  return is_of_inodes ? "its file system has no free inodes (df -i), so it can hold no more files" : reason();
}

bool lacks_room() {
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
}

void throw_with_reason(const std::string& what, const std::filesystem::path& path) {
  const std::string why = reason_at(path);
  throw_run_error(fmt::format("{}: {}", what, why), lacks_room());
}

Descriptor::Descriptor(const std::filesystem::path& path, int flags)
    : value_(::open(path.c_str(), flags | O_CLOEXEC)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  close();
  value_ = std::exchange(other.value_, -1);
  return *this;
}

void Descriptor::close() {
  if (value_ >= 0) ::close(std::exchange(value_, -1));
}

ssize_t read_fully(int descriptor, char* out, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(descriptor, out + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool is_same_file(int descriptor, const std::filesystem::path& name) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace gyre
