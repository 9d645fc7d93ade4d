// UTF-8: finding where a text that comes in pieces stops being valid, and where it may be cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gyre {

// Checks pieces of one text in order.
class Utf8Checker {
 public:
  // The offset in the whole text of the first byte that cannot be, if there is one in this piece.
  std::optional<int64_t> check(std::string_view piece);
  // Whether the text may end here: no character is incomplete.
  bool complete() const { return missing_ == 0; }
  int64_t offset() const { return offset_; }

 private:
  int64_t offset_ = 0;
  int missing_ = 0;                           // continuation bytes still to come
  unsigned char least_ = 0x80, most_ = 0xBF;  // of the next one: overlong forms, surrogates, past U+10FFFF
};

// The length of `text` without the character that its last bytes may only begin: where it may be cut.
size_t whole_characters(std::string_view text);

}  // namespace gyre
