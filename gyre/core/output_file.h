// Files that are written. What changes files goes through a FileSystem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// A file open for writing. Every failure (a full disk, say) is a RunError with path and reason. Closes itself; what was
// not synced may then be lost in a crash.
class OutputFile {
 public:
  // `flags` as of open(2).
  OutputFile(std::filesystem::path path, int flags, FileSystem& files = system_files(), mode_t mode = 0644);
  // Of a descriptor that is open; -1, with errno set, where it could not be.
  struct TakesOver {};
  OutputFile(std::filesystem::path path, int descriptor, TakesOver, FileSystem& files);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All of it, however many calls that takes.
  void write(const void* data, size_t bytes);
  void write_at(uint64_t offset, const void* data, size_t bytes);
  // Shortens the file; what is written next follows there.
  void truncate(uint64_t bytes);
  void sync();
  void close();
  // For what changes nothing.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  FileSystem& files() const { return files_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  FileSystem& files_;
  std::filesystem::path path_;
  int descriptor_;
};

// Sequential writer with large buffers. `close` flushes and syncs; a failure anywhere throws RunError. Destroyed
// without `close`, the file is removed: nothing half-written stays.
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
