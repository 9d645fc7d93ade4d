#include "gyre/tokenizers/json/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "gyre/core/utf8.h"

namespace gyre::unicode {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

int options_of(Form form) {
  constexpr int kCommon = UTF8PROC_STABLE;
  switch (form) {
    case Form::NFC:
      return kCommon | UTF8PROC_COMPOSE;
    case Form::NFD:
      return kCommon | UTF8PROC_DECOMPOSE;
    case Form::NFKC:
      return kCommon | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case Form::NFKD:
      return kCommon | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return kCommon;
}

// Characters that normalization to `form` leaves unchanged in any context: ASCII, and for NFC some more ranges.
bool is_normal(char32_t c, Form form) {
  if (c < 0x80) return true;
  if (form != Form::NFC) return false;
  return c < 0x300 || (c >= 0x2010 && c <= 0x2027) || (c >= 0x4E00 && c <= 0x9FFF);
}

// The longest decomposition of one character has 18.
using Parts = std::array<utf8proc_int32_t, 32>;

// Decomposes a character into `parts`; returns their number.
size_t decompose(char32_t c, int options, Parts& parts) {
  int boundary = 0;
  return static_cast<size_t>(utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                                     static_cast<utf8proc_option_t>(options), &boundary));
}

std::vector<utf8proc_int32_t> decomposed(std::string_view line, Form form) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(line.size());
  Parts parts{};
  for (size_t at = 0; at < line.size();) {
    const Character c = character_at(line, at);
    codes.insert(codes.end(), parts.begin(),
                 parts.begin() + static_cast<ptrdiff_t>(decompose(c.code, options_of(form), parts)));
    at += c.bytes;
  }
  return codes;
}

// Puts the marks that follow a character into canonical order. utf8proc_map() would exchange neighbours until they are
// in order, which takes hours for a megabyte of marks.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto rank = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto end = std::find_if(begin, codes.end(), [&](auto code) { return rank(code) == 0; });
    if (!std::ranges::is_sorted(begin, end, {}, rank)) std::ranges::stable_sort(begin, end, {}, rank);
    begin = std::find_if(end, codes.end(), [&](auto code) { return rank(code) != 0; });
  }
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  const bool joins = c == 0x200C || c == 0x200D;
  const bool letter_in_circle = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                                (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) || kind == UTF8PROC_CATEGORY_PC || joins ||
         letter_in_circle;
}

bool is_other(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO ||
         kind == UTF8PROC_CATEGORY_CS;
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_ideograph(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (c < 0x3400) return false;
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

void append_lowercase(std::string& text, char32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
    return;
  }
  if (c == 0x130) {  // the only one whose lower case has two characters
    text += "i\xcc\x87";
    return;
  }
  append_character(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void append_without_accents(std::string& text, char32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c));
    return;
  }
  Parts parts{};
  const size_t count = decompose(c, UTF8PROC_DECOMPOSE, parts);
  for (size_t i = 0; i < count; ++i) {
    const auto part = static_cast<char32_t>(parts[i]);
    if (!is_nonspacing_mark(part)) append_character(text, part);
  }
}

std::string normalize(std::string_view text, Form form) {
  std::string normal;
  normal.reserve(text.size());
  while (!text.empty()) {
    // A line at a time: no line end takes part in a composition. Most lines are already normal.
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    bool plain = true;
    for (size_t at = 0; plain && at < line.size();) {
      const Character c = character_at(line, at);
      plain = is_normal(c.code, form);
      at += c.bytes;
    }
    if (plain) {
      normal += line;
      continue;
    }
    auto codes = decomposed(line, form);
    order_marks(codes);
    const auto count = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                static_cast<utf8proc_option_t>(options_of(form)));
    codes.resize(static_cast<size_t>(count));
    for (const auto code : codes) append_character(normal, static_cast<char32_t>(code));
  }
  return normal;
}

}  // namespace gyre::unicode
