#include "gyre/core/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "gyre/core/descriptor.h"
#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/output_file.h"
#include "gyre/core/replace_in_pieces.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// The end of the chain of links that starts at `path`, whether or not something exists there.
fs::path end_of_links(fs::path path) {
  constexpr int kMaxLinks = 40;  // the system refuses longer chains
  std::error_code error;
  for (int link = 0; link < kMaxLinks; ++link) {
    const fs::path to = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / to;
  }
  return path;
}

// The standard stream that `path` refers to, as /dev/stdout does; -1 for none.
int standard_stream_at(const fs::path& path) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_for_writing = (::fcntl(stream, F_GETFL) & O_ACCMODE) != O_RDONLY;
    if (is_for_writing && is_same_file(stream, path)) return stream;
  }
  return -1;
}

// Whether the file at the end of the links must be written in place, because another file cannot replace it: a device,
// a pipe, a stream that continues after the result.
bool is_written_in_place(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return false;
  return !S_ISREG(status.st_mode) || standard_stream_at(path) >= 0;
}

void write_in_place(const fs::path& path, std::string_view content, FileSystem& files) {
  const int stream = standard_stream_at(path);
  // Duplicate the stream: if its file were opened again, this would write from the beginning and overwrite other
  // output.
  OutputFile file(path, stream >= 0 ? ::fcntl(stream, F_DUPFD_CLOEXEC, 0) : files.open(path, O_WRONLY, 0),
                  OutputFile::TakesOver{}, files);
  file.write(content.data(), content.size());
  file.close();
}

fs::path temporary_name(const fs::path& target, int number) {
  return name_beside(target, ".", fmt::format(".gyre-{}.tmp", number));
}

// A temporary file beside the target that will replace it. Processes that write the same target at the same time use
// different names, since each locks the name it uses. A name that a killed process left is used again.
class Replacement {
 public:
  Replacement(fs::path target, FileSystem& files) : target_(std::move(target)), files_(files) {
    for (int number = 1; !file_; ++number) try_name(temporary_name(target_, number));
  }
  ~Replacement() {
    if (!took_place_) files_.remove(name_);
    if (lock_ >= 0) files_.close(lock_);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view content) {
    take_permissions();
    file_->write(content.data(), content.size());
  }
  void sync() { file_->sync(); }
  void take_place() {
    file_->close();
    rename_path(name_, target_, files_);
    took_place_ = true;
  }

 private:
  // Opens and locks the file of that name unless another process uses it.
  void try_name(const fs::path& name) {
    int descriptor = files_.open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    const bool is_new = descriptor >= 0;
    if (!is_new && errno != EEXIST) {
      throw_with_reason(fmt::format("{}: cannot be written", target_.string()), target_);
    }
    if (!is_new) descriptor = files_.open(name, O_WRONLY | O_NOFOLLOW, 0);
    if (descriptor < 0) return;  // it belongs to another user
    const Lock lock = try_lock(descriptor, files_);
    const bool is_free = lock == Lock::Taken || (lock == Lock::Unsupported && is_new);
    // The previous holder of the lock may have renamed the file to its target.
    if (!is_free || !is_same_file(descriptor, name)) {
      files_.close(descriptor);
      return;
    }
    name_ = name;
    file_.emplace(target_, descriptor, OutputFile::TakesOver{}, files_);
    lock_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // holds the lock past file_->close(), until the rename
    if (lock_ < 0) throw_with_reason(fmt::format("{}: cannot be written", target_.string()), target_);
    if (!is_new) file_->truncate(0);
  }

  // Those of the file that is replaced, before anything is written that others may not read.
  void take_permissions() {
    struct stat old {};
    struct stat own {};
    if (::stat(target_.c_str(), &old) != 0 || ::fstat(file_->descriptor(), &own) != 0) return;
    constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;
    if (((old.st_mode ^ own.st_mode) & kPermissions) != 0) file_->change_mode(old.st_mode & kPermissions);
  }

  fs::path target_, name_;
  FileSystem& files_;
  std::optional<OutputFile> file_;
  int lock_ = -1;
  bool took_place_ = false;
};

// Whether the file at `path` has content, and that does not begin so.
bool is_another_kind(const fs::path& path, std::string_view beginning) {
  const Descriptor file(path, O_RDONLY);
  std::string found(beginning.size(), '\0');
  const ssize_t got = file.ok() ? read_fully(file.get(), found.data(), found.size()) : 0;
  return got > 0 && found.substr(0, static_cast<size_t>(got)) != beginning;
}

}  // namespace

void write_file_atomic(const fs::path& path, std::string_view content, FileSystem& files) {
  write_in_pieces_atomic(
      path, [&](const auto& take) { take(content); }, files);
}

void write_in_pieces_atomic(const fs::path& path, const WritePieces& write, FileSystem& files) {
  if (is_written_in_place(path)) {
    std::string content;  // all of it first: it may be made from what is there
    write([&](std::string_view piece) { content += piece; });
    return write_in_place(path, content, files);
  }
  const fs::path target = end_of_links(path);
  Replacement replacement(target, files);
  write([&](std::string_view piece) { replacement.write(piece); });
  replacement.sync();
  replacement.take_place();
  sync_directory(directory_of(target), files);
}

void replace_file(const fs::path& path, std::string_view content, FileSystem& files) {
  if (is_written_in_place(path)) return write_in_place(path, content, files);
  Replacement replacement(end_of_links(path), files);
  replacement.write(content);
  replacement.take_place();
}

std::string why_not_writable(const fs::path& path, std::string_view beginning) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
    if (::access(path.c_str(), W_OK) != 0) return reason();
    if (is_written_in_place(path)) return "";
    if (is_another_kind(path, beginning)) {
      return fmt::format("it is there and is another kind of file (it does not begin with '{}'); choose another name",
                         beginning);
    }
  } else if (errno != ENOENT) {
    return reason();
  }
  const fs::path target = end_of_links(path);
  if (::access(directory_of(target).c_str(), W_OK | X_OK) != 0) return reason();
  // The temporary path may be longer than the target's, and too long.
  if (::lstat(temporary_name(target, 1).c_str(), &status) != 0 && errno != ENOENT) return reason();
  return "";
}

void check_writable(const fs::path& path) {
  const std::string why = why_not_writable(path);
  if (!why.empty()) throw InputError(fmt::format("{}: cannot be written: {}", path.string(), why));
}

}  // namespace gyre
