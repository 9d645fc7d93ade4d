// The one place through which gyre changes files: every system call that creates, writes, syncs, renames or removes.
// Code that writes is given a FileSystem and changes files in no other way, so that a test can make any N-th call fail,
// be torn or be the last (tests/support/faulty_files.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace gyre {

// Each function is the system call of its name, and reports as it does: -1 with errno set when it failed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // With O_CREAT a new file has mode `mode`, less the umask. O_CLOEXEC is added.
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode) = 0;
  virtual ssize_t write(int descriptor, const void* data, size_t bytes) = 0;
  virtual ssize_t write_at(int descriptor, const void* data, size_t bytes, off_t offset) = 0;
  virtual int truncate(int descriptor, off_t bytes) = 0;
  virtual int change_mode(int descriptor, mode_t mode) = 0;
  virtual int sync(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  // Exchanges the two atomically.
  virtual int exchange(const std::filesystem::path& a, const std::filesystem::path& b) = 0;
  virtual int make_directory(const std::filesystem::path& path) = 0;
  // An exclusive flock(2) without waiting. Closing the descriptor releases it.
  virtual int lock(int descriptor) = 0;
  // Removes a file, a link, or an empty directory.
  virtual int remove(const std::filesystem::path& path) = 0;
  // Free bytes on the file system of `path`, which must exist; -1 if unknown.
  virtual int64_t free_bytes(const std::filesystem::path& path) = 0;
};

// The operating system's files. Stateless.
FileSystem& system_files();

}  // namespace gyre
