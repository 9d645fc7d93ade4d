#include "gyre/core/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"

namespace gyre {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat status {};
  if (!file.ok() || ::fstat(file.get(), &status) != 0) {
    throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw InputError(fmt::format("{}: cannot be mapped: {}", path.string(), reason()));
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace gyre
