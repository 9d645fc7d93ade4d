// Writing files, through a FileSystem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// A file open for writing. Every failure throws RunError, for a full disk NoRoom, with path and reason. The destructor
// closes it without syncing, so a crash may then lose data.
class OutputFile {
 public:
  // `flags` as for open(2).
  OutputFile(std::filesystem::path path, int flags, FileSystem& files = system_files(), mode_t mode = 0666);
  // Takes over an open descriptor; throws if it is -1, with the reason from errno.
  struct TakesOver {};
  OutputFile(std::filesystem::path path, int descriptor, TakesOver, FileSystem& files);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes all bytes, in as many calls as that takes.
  void write(const void* data, size_t bytes);
  void write_at(uint64_t offset, const void* data, size_t bytes);
  // Shortens the file; the next write() continues at its new end.
  void truncate(uint64_t bytes);
  void change_mode(mode_t mode);
  void sync();
  void close();
  // For calls that change nothing.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  FileSystem& files() const { return files_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  FileSystem& files_;
  std::filesystem::path path_;
  int descriptor_;
};

// Sequential writer with large buffers. `close` flushes and syncs; any failure throws RunError. If destroyed without
// `close`, the file is removed, so no incomplete file remains.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path, FileSystem& files = system_files());
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t bytes_written() const { return written_; }
  void close();

 private:
  void flush();
  OutputFile file_;
  bool complete_ = false;
  std::string buffer_;
  uint64_t written_ = 0;
};

// Writes and syncs a file in a directory that is under construction.
void write_new_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());

}  // namespace gyre
