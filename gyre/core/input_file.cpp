#include "gyre/core/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t most) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  return read_all(file.get(), path.string(), most);
}

std::string read_all(int descriptor, const std::string& name, uint64_t most) {
  std::string content;
  for (;;) {
    const size_t before = content.size();
    content.resize(before + kPieceBytes);
    const ssize_t got = read_fully(descriptor, content.data() + before, kPieceBytes);
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", name, reason()));
    content.resize(before + static_cast<size_t>(got));
    if (content.size() > most) {
      throw InputError(fmt::format("{}: has more than {}, which is too much for what is read here; give the right file",
                                   name, human_bytes(static_cast<double>(most))));
    }
    if (static_cast<size_t>(got) < kPieceBytes) return content;
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

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)), file_(path_, O_RDONLY) {
  struct stat status {};
  if (!file_.ok() || ::fstat(file_.get(), &status) != 0) {
    throw InputError(fmt::format("{}: cannot be opened: {}", path_.string(), reason()));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::Stamp InputFile::stamp() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0)
    throw RunError(fmt::format("{}: cannot be looked at: {}", path_.string(), reason()));
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

void InputFile::read_at(uint64_t offset, void* data, size_t bytes) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(file_.get(), to, bytes, static_cast<off_t>(offset));
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

}  // namespace gyre
