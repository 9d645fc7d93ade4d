#include "gyre/core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::string reason() {
  return std::strerror(errno);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  bool ok() const { return value_ >= 0; }

 private:
  int value_;
};

// read(2) until `bytes` are there or the file ends; the number read, or -1 with errno set.
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

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  std::string content;
  for (;;) {
    const size_t before = content.size();
    content.resize(before + kBufferBytes);
    const ssize_t got = read_fully(file.get(), content.data() + before, kBufferBytes);
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path.string(), reason()));
    content.resize(before + static_cast<size_t>(got));
    if (static_cast<size_t>(got) < kBufferBytes) return content;
  }
}

FileWriter::FileWriter(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw RunError(fmt::format("{}: cannot be created: {}", path.string(), reason()));
  buffer_.reserve(kBufferBytes);
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void FileWriter::write(const void* data, size_t bytes) {
  written_ += bytes;
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t part = std::min(bytes, kBufferBytes - buffer_.size());
    buffer_.append(from, part);
    from += part;
    bytes -= part;
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void FileWriter::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw RunError(fmt::format("{}: cannot be written: {}", path_.string(), reason()));
    done += static_cast<size_t>(put);
  }
  buffer_.clear();
}

void FileWriter::close() {
  flush();
  if (::fsync(descriptor_) != 0) throw RunError(fmt::format("{}: cannot be synced: {}", path_.string(), reason()));
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const std::string why = reason();
    ::unlink(path_.c_str());
    throw RunError(fmt::format("{}: cannot be closed: {}", path_.string(), why));
  }
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  FileWriter writer(temporary);
  writer.write(content);
  writer.close();
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(temporary.c_str());
    throw RunError(fmt::format("{}: cannot be replaced: {}", path.string(), why));
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

void sync_directory(const std::filesystem::path& directory) {
  const Descriptor handle(directory, O_RDONLY | O_DIRECTORY);
  if (!handle.ok() || ::fsync(handle.get()) != 0) {
    throw RunError(fmt::format("{}: directory cannot be synced: {}", directory.string(), reason()));
  }
}

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

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const auto file = directory / ".lock";
  descriptor_ = error ? -1 : ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw InputError(fmt::format("{}: cannot be created: {}; choose another --out", directory.string(),
                                 error ? error.message() : std::strerror(errno)));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  throw InputError(
      fmt::format("{}: another process is writing here; wait for it, or choose another --out", directory.string()));
}

DirectoryLock::~DirectoryLock() {
  ::close(descriptor_);
}

Checksum::Checksum() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
Checksum::~Checksum() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

void Checksum::update(const void* data, size_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), data, bytes);
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string file_checksum(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  Checksum checksum;
  std::string buffer(kBufferBytes, '\0');
  for (;;) {
    const ssize_t got = read_fully(file.get(), buffer.data(), buffer.size());
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path.string(), reason()));
    if (got == 0) return checksum.hex();
    checksum.update(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace gyre
