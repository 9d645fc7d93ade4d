// Memory-mapped files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace gyre {

// A read-only memory map. An empty file maps to an empty span. The constructor throws InputError with path and reason.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace gyre
