// What the functions about files share: descriptors that close themselves, locks, and the
// system's reasons.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "gyre/core/file_system.h"

namespace gyre {

// What came of an attempt to lock a file or a directory.
enum class Lock {
  Taken,
  Held,        // by another process, or another descriptor of this one
  Unsupported  // as on some network file systems: there two at once are the user's to avoid
};
Lock try_lock(int descriptor, FileSystem& files);

// Why the last system call failed.
std::string reason();

// A file descriptor that closes itself.
class Descriptor {
 public:
  // For reading, or what else changes nothing.
  Descriptor(const std::filesystem::path& path, int flags);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  bool ok() const { return value_ >= 0; }

 private:
  int value_;
};

// read(2) until `bytes` are there or the file ends; the number read, or -1 with errno set.
ssize_t read_fully(int descriptor, char* out, size_t bytes);

// Whether the descriptor's file is the one of that name.
bool is_file(int descriptor, const std::filesystem::path& name);

}  // namespace gyre
