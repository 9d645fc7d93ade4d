// Token files, in llm.c's format: 256 little-endian int32 (magic 20240520, version 1, number of tokens) and uint16
// tokens; with magic 20240801 and version 7 the tokens are uint32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gyre/core/files.h"

namespace gyre {

// How a token is written.
enum class TokenType { U8, I8, I16, U16, I32, U32, I64 };
size_t width_of(TokenType type);

// Where a file's tokens are: back to back.
struct TokenLayout {
  int64_t size = 0;  // tokens
  TokenType type = TokenType::U16;
  uint64_t offset = 0;  // of the first
};
// Whether a file that begins so has the header above.
bool has_token_file_header(std::span<const std::byte> first);
// Of the first bytes of a file (a kilobyte, or all it has) that is `file_bytes` long. InputError: not a token file,
// truncated, too long.
TokenLayout parse_token_file_header(std::span<const std::byte> first, uint64_t file_bytes, const std::string& origin);

// Read where it lies, a few tokens at a time. A map would be as fast, but a file that is cut short under a run is an
// error here and would be a SIGBUS there.
class TokenFile {
 public:
  // By its header. InputError: missing, not a token file, truncated.
  explicit TokenFile(const std::filesystem::path& path);
  // InputError: missing, shorter than the layout says.
  TokenFile(const std::filesystem::path& path, const TokenLayout& layout);
  int64_t size() const { return layout_.size; }
  // Tokens [begin, begin + out.size()). RunError if the file has changed since it was opened: cut short, or with a
  // token outside the vocabulary.
  void read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const;
  const std::filesystem::path& path() const { return path_; }

  struct Content {
    std::string checksum;  // XXH3-128 of the whole file
    // The first token that is not below the vocabulary, and where; -1: there is none.
    int64_t outside = 0, outside_at = -1;
  };
  // Reads the whole file.
  Content scan(int64_t vocabulary) const;
  InputFile::Stamp stamp() const { return file_.stamp(); }

 private:
  std::filesystem::path path_;
  InputFile file_;
  TokenLayout layout_;
};

// Streams tokens to `path`; finish() writes the header. Without finish() nothing stays.
class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& path, int64_t vocabulary, FileSystem& files = system_files());
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  void append(std::span<const int32_t> tokens);
  int64_t size() const { return size_; }
  // Moves the last `count` tokens to the end of `other`.
  void move_tail(int64_t count, TokenFileWriter& other);
  // Syncs, and returns the file's checksum.
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
