#include "gyre/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kHeaderBytes = 1024;
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int32_t kNarrowMagic = 20240520, kNarrowVersion = 1;
constexpr int32_t kWideMagic = 20240801, kWideVersion = 7;

// Calls visit(i, token) for every token in `bytes`.
template <typename Token, typename Visit>
void for_each_token(std::span<const char> bytes, Visit&& visit) {
  for (size_t i = 0; i < bytes.size() / sizeof(Token); ++i) {
    Token token = 0;
    std::memcpy(&token, bytes.data() + sizeof(Token) * i, sizeof(Token));
    visit(i, static_cast<int64_t>(token));
  }
}
template <typename Visit>
void for_each_token(std::span<const char> bytes, bool wide, Visit&& visit) {
  if (wide) {
    for_each_token<uint32_t>(bytes, visit);
  } else {
    for_each_token<uint16_t>(bytes, visit);
  }
}

}  // namespace

TokenFileHeader parse_token_file_header(std::span<const std::byte> first, uint64_t file_bytes,
                                        const std::string& origin) {
  std::array<int32_t, 3> fields{};
  if (first.size() < sizeof(fields)) {
    throw InputError(
        fmt::format("{}: is truncated or no token file: it has {} bytes, and the header of one alone has {}; "
                    "run gyre prepare again",
                    origin, file_bytes, kHeaderBytes));
  }
  std::memcpy(fields.data(), first.data(), sizeof(fields));
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

TokenFile::TokenFile(const std::filesystem::path& path) : path_(path), file_(path) {
  std::array<std::byte, kHeaderBytes> first{};
  const size_t there = std::min<uint64_t>(kHeaderBytes, file_.size());
  file_.read_at(0, first.data(), there);
  header_ = parse_token_file_header(std::span(first).first(there), file_.size(), path.string());
}

void TokenFile::read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const {
  const size_t width = header_.wide ? 4 : 2;
  std::vector<char> bytes(out.size() * width);
  file_.read_at(kHeaderBytes + static_cast<uint64_t>(begin) * width, bytes.data(), bytes.size());
  for_each_token(bytes, header_.wide, [&](size_t i, int64_t token) {
    if (token >= vocabulary) {
      throw RunError(
          fmt::format("{}: token {} at {} is outside the vocabulary of {}: the file was changed while in use",
                      path_.string(), token, begin + static_cast<int64_t>(i), vocabulary));
    }
    out[i] = token;
  });
}

TokenFile::Content TokenFile::scan() const {
  Content content;
  Checksum checksum;
  std::vector<char> bytes(kBufferBytes);
  for (uint64_t at = 0; at < file_.size(); at += bytes.size()) {
    bytes.resize(std::min<uint64_t>(kBufferBytes, file_.size() - at));
    file_.read_at(at, bytes.data(), bytes.size());
    checksum.update(bytes.data(), bytes.size());
    const size_t header = at == 0 ? kHeaderBytes : 0;
    for_each_token(std::span(bytes).subspan(header), header_.wide,
                   [&](size_t, int64_t token) { content.largest = std::max(content.largest, token); });
  }
  content.checksum = checksum.hex();
  return content;
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary, FileSystem& files)
    : file_(path, O_RDWR | O_CREAT | O_TRUNC, files), wide_(vocabulary > 65536) {
  buffer_.assign(kHeaderBytes, 0);
}

TokenFileWriter::~TokenFileWriter() {
  if (!finished_) file_.files().remove(file_.path());
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
    throw InputError(fmt::format("{}: more than {} tokens do not fit one token file; give less text",
                                 file_.path().string(), INT32_MAX));
  }
  if (buffer_.size() >= kBufferBytes) flush();
}

void TokenFileWriter::flush() {
  file_.write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void TokenFileWriter::move_tail(int64_t count, TokenFileWriter& other) {
  flush();
  const int64_t begin = size_ - count;
  const InputFile written(file_.path());
  std::vector<char> bytes;
  std::vector<int32_t> tokens;
  constexpr int64_t kAtOnce = 1 << 18;
  for (int64_t at = begin; at < size_; at += kAtOnce) {
    bytes.resize(static_cast<size_t>(std::min(kAtOnce, size_ - at)) * width());
    written.read_at(kHeaderBytes + static_cast<uint64_t>(at) * width(), bytes.data(), bytes.size());
    tokens.resize(bytes.size() / width());
    for_each_token(bytes, wide_, [&](size_t i, int64_t token) { tokens[i] = static_cast<int32_t>(token); });
    other.append(tokens);
  }
  file_.truncate(kHeaderBytes + static_cast<uint64_t>(begin) * width());
  size_ = begin;
}

std::string TokenFileWriter::finish() {
  flush();
  std::array<int32_t, kHeaderBytes / 4> header{};
  header[0] = wide_ ? kWideMagic : kNarrowMagic;
  header[1] = wide_ ? kWideVersion : kNarrowVersion;
  header[2] = static_cast<int32_t>(size_);
  file_.write_at(0, header.data(), kHeaderBytes);
  file_.sync();
  file_.close();
  finished_ = true;
  return file_checksum(file_.path());
}

}  // namespace gyre
