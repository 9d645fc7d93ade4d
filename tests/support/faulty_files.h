// A file system whose n-th call fails. Tests walk n over all calls of an operation and check what is left: the old
// state or the new one, never a mixture.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/file_system.h"

namespace gyre {

enum class Fault {
  Error,     // the call fails, later ones work
  FullDisk,  // from this call on nothing can be created or written; renaming and removing work
  Kill,      // the process ends before the call: this call and all later ones have no effect
  Tear,      // as Kill, but the call still writes half of its data
  PowerCut,  // as Kill, and everything not synced is lost: contents of files, names in directories
};
inline constexpr Fault kAllFaults[] = {Fault::Error, Fault::FullDisk, Fault::Kill, Fault::Tear, Fault::PowerCut};

inline std::string to_string(Fault fault) {
  constexpr const char* kNames[] = {"error", "full disk", "kill", "tear", "power cut"};
  return kNames[static_cast<int>(fault)];
}

class FaultyFiles final : public FileSystem {
 public:
  // Call number `at`, counted from 0, fails; by default none does. Closing is not counted, since it changes nothing.
  // Nothing is really synced, which would be slow; the class only records what was synced.
  explicit FaultyFiles(int64_t at = INT64_MAX, Fault fault = Fault::Error) : at_(at), fault_(fault) {}
  ~FaultyFiles() override {
    for (const auto& [descriptor, file] : open_) ::close(file.witness);
    for (const File& file : closed_) ::close(file.witness);
  }

  // Call number `at` works, and `tell` is called before it.
  void tell_at(int64_t at, std::function<void()> tell) {
    tell_at_ = at;
    tell_ = std::move(tell);
  }

  int64_t calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  bool struck() const {
    const std::lock_guard lock(mutex_);
    return calls_ > at_;
  }

  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    const std::lock_guard lock(mutex_);
    const bool creates = (flags & O_CREAT) != 0 && !exists(path);
    if (creates && !may_go_on(true)) return -1;
    if (!creates && dead_) return failed(EIO);
    const int descriptor = real_.open(path, flags, mode);
    if (descriptor < 0) return descriptor;
    if (creates) names_.push_back({Name::Created, path, path});
    remember(descriptor, path, (flags & O_TRUNC) != 0);
    return descriptor;
  }
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (may_go_on(true)) return real_.write(descriptor, data, bytes);
    return tears() ? torn(real_.write(descriptor, data, bytes / 2)) : -1;
  }
  ssize_t write_at(int descriptor, const void* data, size_t bytes, off_t offset) override {
    const std::lock_guard lock(mutex_);
    if (may_go_on(true)) return real_.write_at(descriptor, data, bytes, offset);
    return tears() ? torn(real_.write_at(descriptor, data, bytes / 2, offset)) : -1;
  }
  int truncate(int descriptor, off_t bytes) override {
    const std::lock_guard lock(mutex_);
    return may_go_on(true) ? real_.truncate(descriptor, bytes) : -1;
  }
  int change_mode(int descriptor, mode_t mode) override {
    const std::lock_guard lock(mutex_);
    return may_go_on(false) ? real_.change_mode(descriptor, mode) : -1;
  }
  int sync(int descriptor) override {
    const std::lock_guard lock(mutex_);
    if (!may_go_on(false)) return -1;
    const auto found = open_.find(descriptor);
    if (found == open_.end()) return 0;
    if (found->second.is_directory) {
      std::erase_if(names_, [&](const Name& name) { return parent(name.to) == found->second.path; });
    } else {
      // A file that was renamed and opened again is still the same file.
      const off_t size = size_of(descriptor);
      for (auto& [other, file] : open_) {
        if (file.inode == found->second.inode) file.synced = size;
      }
      for (File& file : closed_) {
        if (file.inode == found->second.inode) file.synced = size;
      }
    }
    return 0;
  }
  int close(int descriptor) override {
    const std::lock_guard lock(mutex_);
    // A closed file that was not synced can still lose its contents, so its witness is kept.
    const auto found = open_.find(descriptor);
    if (found != open_.end()) {
      closed_.push_back(found->second);
      open_.erase(found);
    }
    const int result = real_.close(descriptor);
    return dead_ ? failed(EIO) : result;
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    const std::lock_guard lock(mutex_);
    if (!may_go_on(false)) return -1;
    names_.push_back({exists(to) ? Name::Replaced : Name::Renamed, from, to});
    return real_.rename(from, to);
  }
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override {
    const std::lock_guard lock(mutex_);
    if (!may_go_on(false)) return -1;
    names_.push_back({Name::Exchanged, a, b});
    return real_.exchange(a, b);
  }
  int make_directory(const std::filesystem::path& path) override {
    const std::lock_guard lock(mutex_);
    if (!may_go_on(true)) return -1;
    const int result = real_.make_directory(path);
    if (result == 0) names_.push_back({Name::Created, path, path});
    return result;
  }
  int remove(const std::filesystem::path& path) override {
    const std::lock_guard lock(mutex_);
    return may_go_on(false) ? real_.remove(path) : -1;
  }
  // Changes no file, so it is not counted.
  int lock(int descriptor) override { return real_.lock(descriptor); }
  // Not counted either.
  int64_t free_bytes(const std::filesystem::path&) override { return -1; }

 private:
  // A change of a directory that no sync has made durable yet.
  struct Name {
    enum Kind { Created, Renamed, Replaced, Exchanged } kind;
    std::filesystem::path from, to;
  };
  struct File {
    std::filesystem::path path;
    int witness = -1;  // its own descriptor, which stays valid across renames
    off_t synced = 0;
    bool is_directory = false;
    ino_t inode = 0;
  };

  static bool exists(const std::filesystem::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
  }
  static std::filesystem::path parent(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  }
  static off_t size_of(int descriptor) {
    struct stat status {};
    ::fstat(descriptor, &status);
    return status.st_size;
  }
  static int failed(int error) {
    errno = error;
    return -1;
  }

  void remember(int descriptor, const std::filesystem::path& path, bool emptied) {
    struct stat status {};
    ::fstat(descriptor, &status);
    File file{path, -1, emptied ? 0 : status.st_size, S_ISDIR(status.st_mode), status.st_ino};
    if (!file.is_directory) file.witness = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    open_[descriptor] = file;
  }

  // Counts the call and returns whether it is performed. If not, errno is set.
  bool may_go_on(bool takes_room) {
    const int64_t number = calls_++;
    if (number == tell_at_) tell_();
    if (dead_) return failed(EIO) == 0;
    if (number < at_) return true;
    if (fault_ == Fault::Error) return number > at_ || failed(EIO) == 0;
    if (fault_ == Fault::FullDisk) return !takes_room || failed(ENOSPC) == 0;
    dead_ = true;
    if (fault_ == Fault::PowerCut) lose_unsynced();
    return failed(EIO) == 0;
  }
  bool tears() { return fault_ == Fault::Tear && calls_ == at_ + 1; }
  static ssize_t torn(ssize_t) { return failed(EIO); }

  void lose_unsynced() {
    for (const auto& [descriptor, file] : open_) lose_contents(file);
    for (const File& file : closed_) lose_contents(file);
    for (size_t i = names_.size(); i-- > 0;) {
      const Name& name = names_[i];
      if (name.kind == Name::Exchanged) real_.exchange(name.from, name.to);
      if (name.kind == Name::Renamed) real_.rename(name.to, name.from);
      if (name.kind == Name::Created) std::filesystem::remove_all(name.to);
      // A replaced name stays: to restore it, the old file would have to be kept.
    }
  }
  static void lose_contents(const File& file) {
    if (file.witness < 0 || size_of(file.witness) <= file.synced) return;
    if (::ftruncate(file.witness, file.synced) != 0) std::abort();
  }

  FileSystem& real_ = system_files();
  mutable std::mutex mutex_;  // a run saves on another thread while it trains
  int64_t at_;
  Fault fault_;
  int64_t tell_at_ = -1;
  std::function<void()> tell_;
  int64_t calls_ = 0;
  bool dead_ = false;
  std::map<int, File> open_;
  std::vector<File> closed_;
  std::vector<Name> names_;
};

// For every fault and every call of `operation(files)`: runs prepare(), the operation with this fault, then
// check(succeeded, fault). `operation` returns whether it succeeded. Returns the number of calls that failed.
template <typename Prepare, typename Operation, typename Check>
int64_t walk_faults(Prepare&& prepare, Operation&& operation, Check&& check) {
  int64_t struck = 0;
  for (const Fault fault : kAllFaults) {
    for (int64_t at = 0;; ++at) {
      prepare();
      FaultyFiles files(at, fault);
      const bool succeeded = operation(files);
      SCOPED_TRACE(to_string(fault) + " at call " + std::to_string(at));
      check(succeeded, fault);
      if (!files.struck()) {
        EXPECT_TRUE(succeeded);
        break;
      }
      ++struck;
      if (::testing::Test::HasFatalFailure()) return struck;
    }
  }
  return struck;
}

}  // namespace gyre
