// Reading files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "gyre/core/descriptor.h"

namespace gyre {

// The most bytes that a file read as a whole may have, so that an endless or a wrong one does not fill the memory: far
// more than any configuration, JSON description or prompt. Callers whose files may be longer say so.
inline constexpr uint64_t kMostOfFile = uint64_t{64} << 20;
inline constexpr uint64_t kAnyLength = std::numeric_limits<uint64_t>::max();

// The whole file as bytes. Throws InputError naming the path and the system's reason, or if it has more than `most`.
std::string read_file(const std::filesystem::path& path, uint64_t most = kMostOfFile);

// Everything that comes from an open descriptor; `name` is for the message. Throws as read_file() does.
std::string read_all(int descriptor, const std::string& name, uint64_t most = kMostOfFile);

// Whether `path` exists. Throws InputError where that cannot be told (a directory that may not be searched), and for a
// dangling link: a disk that is not mounted must not pass for an empty one.
bool is_there(const std::filesystem::path& path);

// A file open for reading at any offset, from any thread.
class InputFile {
 public:
  // Throws InputError naming the path and the system's reason.
  explicit InputFile(std::filesystem::path path);
  uint64_t size() const { return size_; }  // when it was opened
  // Equal stamps mean equal content; with different stamps the content may differ.
  struct Stamp {
    int64_t bytes = 0, modified = 0, changed = 0;  // the latter two in nanoseconds
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  // Throws RunError if the bytes cannot be read: the file was truncated since it was opened, or the device failed.
  void read_at(uint64_t offset, void* data, size_t bytes) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace gyre
