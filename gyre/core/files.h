// Files: whole reads, memory maps, and writes that are either complete or absent after a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gyre {

// The whole file as bytes. Errors: InputError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Sequential writer with large buffers. `close` flushes and fsyncs; a failure anywhere (a full disk, say) throws
// RunError with path and reason. Destroyed without `close`, the file is removed: nothing half-written stays.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t bytes_written() const { return written_; }
  void close();

 private:
  void flush();
  std::filesystem::path path_;
  int descriptor_;
  std::string buffer_;
  uint64_t written_ = 0;
};

// Replaces `path` atomically: writes `path.tmp`, fsyncs, renames, fsyncs the parent directory.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// Makes a rename or a new entry in `directory` durable.
void sync_directory(const std::filesystem::path& directory);

// A read-only memory map. An empty file maps to an empty span.
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

// Held while a process writes into a directory: a lock on a file in it, which the system lets go of with the process.
class DirectoryLock {
 public:
  // Creates the directory if need be. InputError when another process holds it.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

// XXH3-128 of data given in pieces, as 32 hexadecimal digits: the checksum of manifests.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  void update(const void* data, size_t bytes);
  std::string hex() const;

 private:
  void* state_;
};
// The checksum of a whole file, read in pieces.
std::string file_checksum(const std::filesystem::path& path);

}  // namespace gyre
