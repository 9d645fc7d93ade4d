// UTF-8: decoding characters, finding where text that arrives in pieces becomes invalid, and where it may be cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre {

// Spreadsheets and editors of Windows begin files with it. It cannot be seen.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Checks pieces of one text in order.
class Utf8Checker {
 public:
  // The offset in the whole text of the first invalid byte, if this piece has one.
  std::optional<int64_t> check(std::string_view piece);
  // Whether the text may end here: no character is incomplete.
  bool complete() const { return missing_ == 0; }

 private:
  int64_t offset_ = 0;
  int missing_ = 0;  // continuation bytes still to come
  // The bounds of the next byte, which exclude overlong forms, surrogates and codes past U+10FFFF.
  unsigned char least_ = 0x80, most_ = 0xBF;
};

// The length of `text` without an incomplete character at its end: where it may be cut.
size_t whole_characters(std::string_view text);

// The character that starts at text[at] and its length in bytes; `text` must be UTF-8.
struct Character {
  char32_t code;
  size_t bytes;
};
inline Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(at + i < text.size() ? text[at + i] : 0); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {static_cast<char32_t>((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  if (first < 0xF0) return {static_cast<char32_t>((first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
  return {
      static_cast<char32_t>((first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F)),
      4};
}
void append_character(std::string& text, char32_t code);
bool is_utf8(std::string_view text);

}  // namespace gyre
