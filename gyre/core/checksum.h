// Checksums of data and of files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace gyre {

// XXH3-128 of data given in pieces, as 32 hexadecimal digits: the checksum of manifests.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  void update(const void* data, size_t bytes);
  std::string hex() const;

 private:
  void* state_;
};
std::string text_checksum(std::string_view text);
// The checksum of a whole file, read in pieces.
std::string file_checksum(const std::filesystem::path& path);

}  // namespace gyre
