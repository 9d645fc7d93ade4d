// Files: whole reads, memory maps, and writes that are either complete or absent after a crash. What changes files goes
// through a FileSystem (file_system.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "gyre/core/file_system.h"

namespace gyre {

// The whole file as bytes. Errors: InputError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Whether something is at `path`. InputError where that cannot be told (a directory that may not be searched), and for
// a link to what is not there: a disk that is not mounted is not an empty one.
bool is_there(const std::filesystem::path& path);

// A file open for reading at any place, from any thread.
class InputFile {
 public:
  // InputError naming the path and the system's reason.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  uint64_t size() const { return size_; }  // when it was opened
  // The same stamp is the same content; another one may be another content.
  struct Stamp {
    int64_t bytes = 0, modified = 0, changed = 0;  // the latter two in nanoseconds
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  // RunError when the bytes cannot be had: the file was cut short since, or the device failed.
  void read_at(uint64_t offset, void* data, size_t bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// A file open for writing. Every failure (a full disk, say) is a RunError with path and reason. Closes itself; what was
// not synced may then be lost in a crash.
class OutputFile {
 public:
  // `flags` as of open(2).
  OutputFile(std::filesystem::path path, int flags, FileSystem& files = system_files(), mode_t mode = 0644);
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
// Replaces `path` atomically: writes `path.tmp`, syncs, renames, syncs the parent directory.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());
// The same unsynced, for what a crash of the machine may lose: whoever reads `path` sees all of it, old or new.
// RunError.
void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = system_files());

// Asked before the work whose result goes there: InputError with path and reason if write_file_atomic could not begin.
void check_writable(const std::filesystem::path& path, FileSystem& files = system_files());

// RunError when it cannot be done; the old name stays then.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 FileSystem& files = system_files());

// Makes a rename or a new entry in `directory` durable.
void sync_directory(const std::filesystem::path& directory, FileSystem& files = system_files());

// The directory and those above it, where they are missing, each made durable. InputError with path and reason: what
// gets a directory made is a path that the user gave.
void make_directories(const std::filesystem::path& directory, FileSystem& files = system_files());

// A directory with all that is in it, or a file; links are not followed. What cannot be removed stays: for what is in
// nobody's way.
void remove_tree(const std::filesystem::path& path, FileSystem& files = system_files());

// A directory under construction, with a name of its own beside the one it is made for. It takes that name when it is
// complete; else it is removed.
class DirectoryUnderConstruction {
 public:
  // `path`: the temporary name. What an earlier process left there goes first. InputError when another process is
  // building there now.
  explicit DirectoryUnderConstruction(std::filesystem::path path, FileSystem& files = system_files());
  ~DirectoryUnderConstruction();
  DirectoryUnderConstruction(const DirectoryUnderConstruction&) = delete;
  DirectoryUnderConstruction& operator=(const DirectoryUnderConstruction&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Syncs it and gives it the name `target`, in place of what has that name; durable when this returns. RunError.
  void complete(const std::filesystem::path& target);

 private:
  FileSystem& files_;
  std::filesystem::path path_;
  int descriptor_;  // the directory, locked
};

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
  // Creates the directory if need be. InputError when another process holds it. If nothing else is in the directory at
  // the end, nothing is left of the lock, nor of a directory that it has made. `files` outlives it.
  explicit DirectoryLock(const std::filesystem::path& directory, FileSystem& files = system_files());
  ~DirectoryLock();
  // Says something to other processes that look, for as long as it is held or a later one says something else.
  // RunError.
  void leave_note(const std::string& note);
  // What was last said; empty where nothing was.
  static std::string note_in(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  FileSystem& files_;
  std::filesystem::path directory_;
  bool made_ = false;
  int descriptor_ = -1;
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
