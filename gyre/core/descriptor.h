// Descriptors that close themselves, locks on files, and the system's error messages.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "gyre/core/file_system.h"

namespace gyre {

// The outcome of trying to lock a file or a directory.
enum class Lock {
  Taken,
  Held,        // by another process, or another descriptor of this one
  Unsupported  // as on some network file systems; there the user must not run two at once
};
Lock try_lock(int descriptor, FileSystem& files);

// The text of errno: why the last system call failed.
std::string reason();
// The same where that call was to make or write `path`: a file system without free inodes is told from a full disk.
std::string reason_at(const std::filesystem::path& path);
// Whether errno says that there was no room: a full disk, or a quota or a limit of file sizes.
bool lacks_room();
// Throws what the failure of the last system call (errno), on `path`, is: a NoRoom or another RunError. `what` says
// what could not be done.
[[noreturn]] void throw_with_reason(const std::string& what, const std::filesystem::path& path);

// A file descriptor that closes itself.
class Descriptor {
 public:
  // `flags` as for open(2), without any that change files: those go through a FileSystem.
  Descriptor(const std::filesystem::path& path, int flags);
  // Takes over what a system call has returned; -1: none.
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  void close();
  int get() const { return value_; }
  bool ok() const { return value_ >= 0; }

 private:
  int value_;
};

// Calls read(2) until `bytes` are read or the file ends. Returns the number read, or -1 with errno set.
ssize_t read_fully(int descriptor, char* out, size_t bytes);

// Whether `name` is the file that `descriptor` has open.
bool is_same_file(int descriptor, const std::filesystem::path& name);

}  // namespace gyre
