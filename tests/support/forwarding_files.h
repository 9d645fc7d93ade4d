// Forwards all calls to the real file system, or to another; tests override the calls that they are about.
#pragma once

#include "gyre/core/file_system.h"

namespace gyre {

class ForwardingFiles : public FileSystem {
 public:
  using Path = std::filesystem::path;
  explicit ForwardingFiles(FileSystem& real = system_files()) : real_(real) {}
  int open(const Path& path, int flags, mode_t mode) override { return real_.open(path, flags, mode); }
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    return real_.write(descriptor, data, bytes);
  }
  ssize_t write_at(int descriptor, const void* data, size_t bytes, off_t offset) override {
    return real_.write_at(descriptor, data, bytes, offset);
  }
  int truncate(int descriptor, off_t bytes) override { return real_.truncate(descriptor, bytes); }
  int change_mode(int descriptor, mode_t mode) override { return real_.change_mode(descriptor, mode); }
  int sync(int descriptor) override { return real_.sync(descriptor); }
  int close(int descriptor) override { return real_.close(descriptor); }
  int rename(const Path& from, const Path& to) override { return real_.rename(from, to); }
  int exchange(const Path& a, const Path& b) override { return real_.exchange(a, b); }
  int make_directory(const Path& path) override { return real_.make_directory(path); }
  int lock(int descriptor) override { return real_.lock(descriptor); }
  int remove(const Path& path) override { return real_.remove(path); }
  int64_t free_bytes(const Path& path) override { return real_.free_bytes(path); }

 private:
  FileSystem& real_;
};

}  // namespace gyre
