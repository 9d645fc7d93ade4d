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
constexpr const char* kLockFile = ".lock";

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

// Whether the descriptor's file is the one of that name.
bool is_file(int descriptor, const std::filesystem::path& name) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
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

bool is_there(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  const int error = errno;
  if (error == ENOENT && ::lstat(path.c_str(), &status) != 0) return false;
  if (error == ENOENT) {
    throw InputError(fmt::format("{}: is a link to {}, which is not there; mount or put back what it leads to",
                                 path.string(), std::filesystem::read_symlink(path).string()));
  }
  throw InputError(fmt::format("{}: cannot be looked at: {}", path.string(), std::strerror(error)));
}

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    throw InputError(fmt::format("{}: cannot be opened: {}", path_.string(), reason()));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::Stamp InputFile::stamp() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw RunError(fmt::format("{}: cannot be looked at: {}", path_.string(), reason()));
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

void InputFile::read_at(uint64_t offset, void* data, size_t bytes) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw RunError(fmt::format("{}: cannot be read: {}", path_.string(), reason()));
    if (got == 0) {
      throw RunError(
          fmt::format("{}: ends at byte {}, where it had {} when it was opened: it was cut short while in use",
                      path_.string(), offset, size_));
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

OutputFile::OutputFile(std::filesystem::path path, int flags, FileSystem& files, mode_t mode)
    : files_(files), path_(std::move(path)), descriptor_(files.open(path_, flags, mode)) {
  if (descriptor_ < 0) fail((flags & (O_CREAT | O_TMPFILE)) != 0 ? "created" : "opened");
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) files_.close(descriptor_);
}

void OutputFile::fail(const char* what) const {
  throw RunError(fmt::format("{}: cannot be {}: {}", path_.string(), what, reason()));
}

void OutputFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = files_.write(descriptor_, from, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("written");
    from += put;
    bytes -= static_cast<size_t>(put);
  }
}

void OutputFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = files_.write_at(descriptor_, from, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("written");
    from += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<size_t>(put);
  }
}

void OutputFile::truncate(uint64_t bytes) {
  const auto end = static_cast<off_t>(bytes);
  if (files_.truncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail("shortened");
}

void OutputFile::sync() {
  if (files_.sync(descriptor_) != 0) fail("synced");
}

void OutputFile::close() {
  if (files_.close(std::exchange(descriptor_, -1)) != 0) fail("closed");
}

FileWriter::FileWriter(const std::filesystem::path& path, FileSystem& files)
    : file_(path, O_WRONLY | O_CREAT | O_TRUNC, files) {
  buffer_.reserve(kBufferBytes);
}

FileWriter::~FileWriter() {
  if (!complete_) file_.files().remove(file_.path());
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
  file_.write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void FileWriter::close() {
  flush();
  file_.sync();
  file_.close();
  complete_ = true;
}

void write_new_file(const std::filesystem::path& path, std::string_view content, FileSystem& files) {
  FileWriter writer(path, files);
  writer.write(content);
  writer.close();
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  write_new_file(temporary, content, files);
  try {
    rename_path(temporary, path, files);
  } catch (const RunError&) {
    files.remove(temporary);
    throw;
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : ".", files);
}

void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    OutputFile file(temporary, O_WRONLY | O_CREAT | O_TRUNC, files);
    file.write(content.data(), content.size());
    file.close();
    rename_path(temporary, path, files);
  } catch (const RunError&) {
    files.remove(temporary);
    throw;
  }
}

void check_writable(const std::filesystem::path& path, FileSystem& files) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    throw InputError(fmt::format("{}: cannot be written: it is a directory", path.string()));
  }
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  const int descriptor = files.open(temporary, O_WRONLY | O_CREAT, 0644);
  if (descriptor < 0) throw InputError(fmt::format("{}: cannot be written: {}", path.string(), reason()));
  files.close(descriptor);
  files.remove(temporary);
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to, FileSystem& files) {
  if (files.rename(from, to) == 0) return;
  throw RunError(fmt::format("{}: cannot be renamed to {}: {}", from.string(), to.string(), reason()));
}

void sync_directory(const std::filesystem::path& directory, FileSystem& files) {
  OutputFile(directory, O_RDONLY | O_DIRECTORY, files).sync();
}

void make_directories(const std::filesystem::path& directory, FileSystem& files) {
  std::error_code none;
  if (std::filesystem::is_directory(directory, none)) return;
  const auto parent = directory.has_filename() ? directory.parent_path() : directory.parent_path().parent_path();
  if (!parent.empty()) make_directories(parent, files);
  if (files.make_directory(directory) != 0) {
    const std::string why = reason();
    if (std::filesystem::is_directory(directory, none)) return;  // "a/." was "a"; or another process was faster
    throw InputError(fmt::format("{}: cannot be created: {}; choose another place", directory.string(), why));
  }
  sync_directory(parent.empty() ? "." : parent, files);
}

void remove_tree(const std::filesystem::path& path, FileSystem& files) {
  std::error_code error;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, error))) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) remove_tree(entry.path(), files);
  }
  files.remove(path);
}

DirectoryUnderConstruction::DirectoryUnderConstruction(std::filesystem::path path, FileSystem& files)
    : files_(files), path_(std::move(path)) {
  make_directories(path_, files_);
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some network file systems lock no directories; there two builders at once are the user's to avoid.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw InputError(fmt::format("{}: another process is writing here; wait for it", path_.string()));
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) remove_tree(entry.path(), files_);
}

DirectoryUnderConstruction::~DirectoryUnderConstruction() {
  if (!path_.empty()) remove_tree(path_, files_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DirectoryUnderConstruction::complete(const std::filesystem::path& target) {
  sync_directory(path_, files_);
  std::error_code none;
  if (std::filesystem::exists(std::filesystem::symlink_status(target, none))) {
    // In one step, so that there is a whole one at every moment. The old one then has the temporary name, and goes.
    if (files_.exchange(path_, target) != 0) {
      throw RunError(fmt::format("{}: cannot take the place of {}: {}", path_.string(), target.string(), reason()));
    }
  } else {
    rename_path(path_, target, files_);
    path_.clear();
  }
  sync_directory(target.has_parent_path() ? target.parent_path() : ".", files_);
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

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, FileSystem& files)
    : files_(files), directory_(directory) {
  const auto file = directory / kLockFile;
  std::error_code none;
  made_ = !std::filesystem::exists(directory, none);
  do {
    make_directories(directory, files);
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = files.open(file, O_RDWR | O_CREAT, 0644);
    if (descriptor_ < 0) {
      throw InputError(fmt::format("{}: cannot be written to: {}; choose another --out", directory.string(), reason()));
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      throw InputError(
          fmt::format("{}: another process is writing here; wait for it, or choose another --out", directory.string()));
    }
  } while (!is_file(descriptor_, file));  // whoever held it has removed it meanwhile
}

DirectoryLock::~DirectoryLock() {
  std::error_code none;
  std::filesystem::directory_iterator entries(directory_, none);
  const bool is_alone = !none && entries != std::filesystem::directory_iterator() &&
                        entries->path().filename() == kLockFile && ++entries == std::filesystem::directory_iterator();
  if (is_alone) {
    files_.remove(directory_ / kLockFile);
    if (made_) files_.remove(directory_);
  }
  ::close(descriptor_);
}

void DirectoryLock::leave_note(const std::string& note) {
  OutputFile file(directory_ / kLockFile, O_WRONLY | O_TRUNC, files_);
  file.write(note.data(), note.size());
  file.sync();
  file.close();
}

std::string DirectoryLock::note_in(const std::filesystem::path& directory) {
  std::error_code none;
  const auto file = directory / kLockFile;
  return std::filesystem::is_regular_file(file, none) ? read_file(file) : "";
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
