#include "gyre/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "gyre/core/error.h"
#include "gyre/core/stopped.h"

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
void for_each_token(std::span<const char> bytes, TokenType type, Visit&& visit) {
  switch (type) {
    case TokenType::U8:
      return for_each_token<uint8_t>(bytes, visit);
    case TokenType::I8:
      return for_each_token<int8_t>(bytes, visit);
    case TokenType::I16:
      return for_each_token<int16_t>(bytes, visit);
    case TokenType::U16:
      return for_each_token<uint16_t>(bytes, visit);
    case TokenType::I32:
      return for_each_token<int32_t>(bytes, visit);
    case TokenType::U32:
      return for_each_token<uint32_t>(bytes, visit);
    case TokenType::I64:
      return for_each_token<int64_t>(bytes, visit);
  }
}

bool is_outside(int64_t token, int64_t vocabulary) {
  return token < 0 || token >= vocabulary;
}

TokenLayout read_layout(const InputFile& file, const std::filesystem::path& path) {
  std::array<std::byte, kHeaderBytes> first{};
  const size_t there = std::min<uint64_t>(kHeaderBytes, file.size());
  file.read_at(0, first.data(), there);
  return parse_token_file_header(std::span(first).first(there), file.size(), path.string());
}

}  // namespace

size_t width_of(TokenType type) {
  switch (type) {
    case TokenType::U8:
    case TokenType::I8:
      return 1;
    case TokenType::I16:
    case TokenType::U16:
      return 2;
    case TokenType::I32:
    case TokenType::U32:
      return 4;
    case TokenType::I64:
      return 8;
  }
  return 0;
}

bool has_token_file_header(std::span<const std::byte> first) {
  int32_t magic = 0;
  if (first.size() < sizeof(magic)) return false;
  std::memcpy(&magic, first.data(), sizeof(magic));
  return magic == kNarrowMagic || magic == kWideMagic;
}

TokenLayout parse_token_file_header(std::span<const std::byte> first, uint64_t file_bytes, const std::string& origin) {
  std::array<int32_t, 3> fields{};
  if (first.size() < sizeof(fields)) {
    throw InputError(
        fmt::format("{}: is truncated, or not a token file: it has {} bytes, and the header of a token file has {}; "
                    "bring back the whole file, or make it again",
                    origin, file_bytes, kHeaderBytes));
  }
  std::memcpy(fields.data(), first.data(), sizeof(fields));
  const bool narrow = fields[0] == kNarrowMagic && fields[1] == kNarrowVersion;
  const bool wide = fields[0] == kWideMagic && fields[1] == kWideVersion;
  if (!narrow && !wide) throw InputError(fmt::format("{}: not a token file", origin));
  const int64_t size = static_cast<uint32_t>(fields[2]);
  const uint64_t expected = kHeaderBytes + static_cast<uint64_t>(size) * (wide ? 4 : 2);
  if (file_bytes != expected) {
    throw InputError(
        fmt::format("{}: is {}: {} tokens need {} bytes, the file has {}; bring back the whole file, or make it again",
                    origin, file_bytes < expected ? "truncated" : "too long", size, expected, file_bytes));
  }
  return {size, wide ? TokenType::U32 : TokenType::U16, kHeaderBytes};
}

TokenFile::TokenFile(const std::filesystem::path& path) : path_(path), file_(path), layout_(read_layout(file_, path)) {}

TokenFile::TokenFile(const std::filesystem::path& path, const TokenLayout& layout)
    : path_(path), file_(path), layout_(layout) {
  const uint64_t needed = layout.offset + static_cast<uint64_t>(layout.size) * width_of(layout.type);
  if (file_.size() >= needed) return;
  throw InputError(fmt::format("{}: is truncated: {} tokens need {} bytes, the file has {}", path.string(), layout.size,
                               needed, file_.size()));
}

void TokenFile::read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const {
  const size_t width = width_of(layout_.type);
  std::vector<char> bytes(out.size() * width);
  file_.read_at(layout_.offset + static_cast<uint64_t>(begin) * width, bytes.data(), bytes.size());
  for_each_token(bytes, layout_.type, [&](size_t i, int64_t token) {
    if (is_outside(token, vocabulary)) {
      throw RunError(
          fmt::format("{}: token {} at {} is outside the vocabulary of {}: the file was changed while in use",
                      path_.string(), token, begin + static_cast<int64_t>(i), vocabulary));
    }
    out[i] = token;
  });
}

TokenFile::Content TokenFile::scan(int64_t vocabulary, const std::stop_token& stop) const {
  Content content;
  Checksum checksum;
  int64_t number = 0;
  std::vector<char> bytes(kBufferBytes);
  for (uint64_t at = 0; at < file_.size(); at += bytes.size()) {
    throw_if_stopped(stop, "stopped while tokens were read; nothing was changed");
    bytes.resize(std::min<uint64_t>(kBufferBytes, file_.size() - at));
    file_.read_at(at, bytes.data(), bytes.size());
    checksum.update(bytes.data(), bytes.size());
    const size_t before = at == 0 ? std::min<size_t>(layout_.offset, bytes.size()) : 0;
    for_each_token(std::span(bytes).subspan(before), layout_.type, [&](size_t i, int64_t token) {
      if (content.outside_at >= 0 || !is_outside(token, vocabulary)) return;
      content.outside = token;
      content.outside_at = number + static_cast<int64_t>(i);
    });
    number += static_cast<int64_t>((bytes.size() - before) / width_of(layout_.type));
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
  assert(size_ <= kMostTokens);
  if (buffer_.size() >= kBufferBytes) flush();
}

void TokenFileWriter::flush() {
  file_.write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void TokenFileWriter::pause() {
  flush();
  buffer_.shrink_to_fit();
}

void TokenFileWriter::move_tail(int64_t count, const std::function<void(std::span<const int32_t>)>& take) {
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
    for_each_token(bytes, wide_ ? TokenType::U32 : TokenType::U16,
                   [&](size_t i, int64_t token) { tokens[i] = static_cast<int32_t>(token); });
    take(tokens);
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
