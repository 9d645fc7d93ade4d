#include "gyre/core/utf8.h"

#include <algorithm>

namespace gyre {

std::optional<int64_t> Utf8Checker::check(std::string_view piece) {
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (missing_ > 0) {
      if (byte < least_ || byte > most_) return offset_;
      --missing_;
      least_ = 0x80;
      most_ = 0xBF;
    } else if (byte >= 0x80) {
      if (byte < 0xC2 || byte > 0xF4) return offset_;
      missing_ = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      if (byte == 0xE0) least_ = 0xA0;
      if (byte == 0xED) most_ = 0x9F;
      if (byte == 0xF0) least_ = 0x90;
      if (byte == 0xF4) most_ = 0x8F;
    }
    ++offset_;
  }
  return std::nullopt;
}

size_t whole_characters(std::string_view text) {
  constexpr size_t kMaxBytes = 4;
  for (size_t back = 1; back <= std::min(kMaxBytes - 1, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // a continuation byte; the first byte is further back
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

void append_character(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

bool is_utf8(std::string_view text) {
  Utf8Checker checker;
  return !checker.check(text) && checker.complete();
}

}  // namespace gyre
