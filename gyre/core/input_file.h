// Files that are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gyre {

// The whole file as bytes. Errors: InputError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Whether something is at `path`. InputError where that cannot be told (a directory that may not be searched), and for
// a link to what is not there: a disk that is not mounted is not an empty one.
bool is_there(const std::filesystem::path& path);

// A file open for reading at any place, from any thread.
class InputFile {
 public:
  // InputError naming the path and the system's reason.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  uint64_t size() const { return size_; }  // when it was opened
  // The same stamp is the same content; another one may be another content.
  struct Stamp {
    int64_t bytes = 0, modified = 0, changed = 0;  // the latter two in nanoseconds
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  // RunError when the bytes cannot be had: the file was cut short since, or the device failed.
  void read_at(uint64_t offset, void* data, size_t bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace gyre
