#include "gyre/core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, int flags, FileSystem& files, mode_t mode)
    : files_(files), path_(std::move(path)), descriptor_(files.open(path_, flags, mode)) {
  if (descriptor_ < 0) fail((flags & O_CREAT) != 0 ? "created" : "opened");
}

OutputFile::OutputFile(std::filesystem::path path, int descriptor, TakesOver, FileSystem& files)
    : files_(files), path_(std::move(path)), descriptor_(descriptor) {
  if (descriptor_ < 0) fail("opened");
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) files_.close(descriptor_);
}

void OutputFile::fail(const char* what) const {
  throw_with_reason(fmt::format("{}: cannot be {}", path_.string(), what), path_);
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

void OutputFile::change_mode(mode_t mode) {
  if (files_.change_mode(descriptor_, mode) != 0) fail("given the permissions of the file that it replaces");
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

}  // namespace gyre
