#include "gyre/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kHeaderBytes = 1024;
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int32_t kNarrowMagic = 20240520, kNarrowVersion = 1;
constexpr int32_t kWideMagic = 20240801, kWideVersion = 7;

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw RunError(fmt::format("{}: cannot be {}: {}", path.string(), what, std::strerror(errno)));
}

}  // namespace

TokenFileHeader parse_token_file_header(std::span<const std::byte> first, uint64_t file_bytes,
                                        const std::string& origin) {
  std::array<int32_t, 3> fields{};
  if (first.size() >= kHeaderBytes) std::memcpy(fields.data(), first.data(), sizeof(fields));
  const bool narrow = fields[0] == kNarrowMagic && fields[1] == kNarrowVersion;
  const bool wide = fields[0] == kWideMagic && fields[1] == kWideVersion;
  if (!narrow && !wide) throw InputError(fmt::format("{}: not a token file; run gyre prepare again", origin));
  const int64_t size = static_cast<uint32_t>(fields[2]);
  const uint64_t expected = kHeaderBytes + static_cast<uint64_t>(size) * (wide ? 4 : 2);
  if (file_bytes != expected) {
    throw InputError(fmt::format("{}: is {}: {} tokens need {} bytes, the file has {}; run gyre prepare again", origin,
                                 file_bytes < expected ? "truncated" : "too long", size, expected, file_bytes));
  }
  return {size, wide};
}

TokenFile::TokenFile(const std::filesystem::path& path)
    : path_(path), file_(path), header_(parse_token_file_header(file_.bytes(), file_.bytes().size(), path.string())) {}

void TokenFile::read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const {
  const auto* tokens = file_.bytes().data() + kHeaderBytes;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = static_cast<size_t>(begin) + i;
    if (header_.wide) {
      uint32_t token = 0;
      std::memcpy(&token, tokens + 4 * at, 4);
      out[i] = token;
    } else {
      uint16_t token = 0;
      std::memcpy(&token, tokens + 2 * at, 2);
      out[i] = token;
    }
    if (out[i] >= vocabulary) {
      throw InputError(fmt::format("{}: token {} at {} is outside the vocabulary of {}; run gyre prepare again",
                                   path_.string(), out[i], at, vocabulary));
    }
  }
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary)
    : path_(path), temporary_(path.string() + ".tmp"), wide_(vocabulary > 65536) {
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw InputError(fmt::format("{}: cannot be created: {}", temporary_.string(), std::strerror(errno)));
  buffer_.assign(kHeaderBytes, 0);
}

TokenFileWriter::~TokenFileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void TokenFileWriter::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    const auto wide = static_cast<uint32_t>(token);
    const auto narrow = static_cast<uint16_t>(token);
    const char* from = wide_ ? reinterpret_cast<const char*>(&wide) : reinterpret_cast<const char*>(&narrow);
    buffer_.insert(buffer_.end(), from, from + width());
  }
  size_ += static_cast<int64_t>(tokens.size());
  if (size_ > INT32_MAX) {
    throw InputError(
        fmt::format("{}: more than {} tokens do not fit one token file; give less text", path_.string(), INT32_MAX));
  }
  if (buffer_.size() >= kBufferBytes) flush();
}

void TokenFileWriter::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(temporary_, "written");
    done += static_cast<size_t>(put);
  }
  buffer_.clear();
}

void TokenFileWriter::move_tail(int64_t count, TokenFileWriter& other) {
  flush();
  const int64_t begin = size_ - count;
  std::vector<char> bytes;
  std::vector<int32_t> tokens;
  constexpr int64_t kAtOnce = 1 << 18;
  for (int64_t at = begin; at < size_; at += kAtOnce) {
    const auto part = static_cast<size_t>(std::min(kAtOnce, size_ - at));
    bytes.resize(part * width());
    const auto offset = static_cast<off_t>(kHeaderBytes + static_cast<size_t>(at) * width());
    if (::pread(descriptor_, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size())) {
      fail(temporary_, "read back");
    }
    tokens.assign(part, 0);
    for (size_t i = 0; i < part; ++i) std::memcpy(&tokens[i], bytes.data() + i * width(), width());
    other.append(tokens);
  }
  const auto end = static_cast<off_t>(kHeaderBytes + static_cast<size_t>(begin) * width());
  if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail(temporary_, "shortened");
  size_ = begin;
}

std::string TokenFileWriter::finish() {
  flush();
  std::array<int32_t, kHeaderBytes / 4> header{};
  header[0] = wide_ ? kWideMagic : kNarrowMagic;
  header[1] = wide_ ? kWideVersion : kNarrowVersion;
  header[2] = static_cast<int32_t>(size_);
  if (::pwrite(descriptor_, header.data(), kHeaderBytes, 0) != static_cast<ssize_t>(kHeaderBytes))
    fail(temporary_, "written");
  if (::fsync(descriptor_) != 0) fail(temporary_, "synced");
  ::close(std::exchange(descriptor_, -1));
  const std::string checksum = file_checksum(temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(temporary_, "renamed");
  return checksum;
}

}  // namespace gyre
