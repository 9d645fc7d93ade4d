// Token files, in llm.c's format: 256 little-endian int32 (magic 20240520, version 1, number of tokens) and uint16
// tokens; with magic 20240801 and version 7 the tokens are uint32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/files.h"

namespace gyre {

// The type of a token in a file.
enum class TokenType { U8, I8, I16, U16, I32, U32, I64 };
size_t width_of(TokenType type);

// Where the tokens of a file are; they are back to back.
struct TokenLayout {
  int64_t size = 0;  // number of tokens
  TokenType type = TokenType::U16;
  uint64_t offset = 0;  // of the first token, in bytes
};
// Whether a file with these first bytes has the header above.
bool has_token_file_header(std::span<const std::byte> first);
// Parses the first bytes (1 KiB, or all it has) of a file that is `file_bytes` long. Throws InputError if it is not a
// token file, truncated, or too long.
TokenLayout parse_token_file_header(std::span<const std::byte> first, uint64_t file_bytes, const std::string& origin);

// A token file, read a few tokens at a time. A memory map would be as fast, but if the file is truncated during a run,
// a map causes SIGBUS where read() throws.
class TokenFile {
 public:
  // Reads the layout from the header. Throws InputError if the file is missing, not a token file, or truncated.
  explicit TokenFile(const std::filesystem::path& path);
  // Throws InputError if the file is missing or shorter than the layout requires.
  TokenFile(const std::filesystem::path& path, const TokenLayout& layout);
  int64_t size() const { return layout_.size; }
  // Tokens [begin, begin + out.size()). Throws RunError if the file has changed since it was opened: it is truncated,
  // or has a token outside the vocabulary.
  void read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const;
  const std::filesystem::path& path() const { return path_; }

  struct Content {
    std::string checksum;  // XXH3-128 of the whole file
    // The first token outside the vocabulary, and its index; -1 if there is none.
    int64_t outside = 0, outside_at = -1;
  };
  // Reads the whole file. Throws Stopped (core/stopped.h).
  Content scan(int64_t vocabulary, const std::stop_token& stop = {}) const;
  InputFile::Stamp stamp() const { return file_.stamp(); }

 private:
  std::filesystem::path path_;
  InputFile file_;
  TokenLayout layout_;
};

// Streams tokens to `path`, as uint32 if the vocabulary is above 65,536. finish() writes the header; without it the
// destructor removes the file.
class TokenFileWriter {
 public:
  static constexpr int64_t kMostTokens = INT32_MAX;  // in one file
  TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary, FileSystem& files = system_files());
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  // In all no more than kMostTokens.
  void append(std::span<const int32_t> tokens);
  int64_t size() const { return size_; }
  // Hands the last `count` tokens to `take`, a part at a time, and removes them.
  void move_tail(int64_t count, const std::function<void(std::span<const int32_t>)>& take);
  // Holds no memory until more is appended.
  void pause();
  // Writes the header, syncs, closes, and returns the file's checksum.
  std::string finish();

 private:
  void flush();
  size_t width() const { return wide_ ? 4 : 2; }

  OutputFile file_;
  bool wide_;
  bool finished_ = false;
  int64_t size_ = 0;
  std::vector<char> buffer_;
};

}  // namespace gyre
