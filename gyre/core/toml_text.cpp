#include "gyre/core/toml_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/utf8.h"

namespace gyre {
namespace {

constexpr int64_t kMaxDots = 4096;
constexpr std::string_view kBeforeString = " \t\r\n=,[{\xbf";  // the last byte is the end of a byte order mark

enum class Inside { Nothing, Comment, String, LongString };

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

struct Found {
  size_t stray = std::string_view::npos;  // the first character that the library must not see
  int64_t dots = 0;                       // not in strings and comments, and but for the first of a number
  Found at(size_t position) const { return {position, dots}; }
};

// Whether the word that ends at `at` has digits and signs only, as a number has before its dot.
bool begins_number(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && std::string_view("0123456789_+-").find(text[begin - 1]) != std::string_view::npos) --begin;
  return begin < at && (begin == 0 || kBeforeString.find(text[begin - 1]) != std::string_view::npos);
}

Found look_through(std::string_view text) {
  Found found;
  Inside inside = Inside::Nothing;
  char quote = 0;
  const auto three_quotes = [&](size_t at) { return text.substr(at, 3) == std::string(3, quote); };
  for (size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (inside) {
      case Inside::Nothing:
        if (!is_ascii(c)) return found.at(i);
        if (c == '#') inside = Inside::Comment;
        if (c == '.' && !begins_number(text, i)) ++found.dots;
        if (c != '"' && c != '\'') break;
        // Within a word a quote starts no string: the library reads on to the word's end.
        if (i > 0 && kBeforeString.find(text[i - 1]) == std::string_view::npos) return found.at(i);
        quote = c;
        inside = three_quotes(i) ? Inside::LongString : Inside::String;
        if (inside == Inside::LongString) i += 2;
        break;
      case Inside::Comment:
        if (c == '\n') inside = Inside::Nothing;
        break;
      case Inside::String:
        if (c == '\\' && quote == '"') {
          ++i;
        } else if (c == quote || c == '\n') {
          inside = Inside::Nothing;
        }
        break;
      case Inside::LongString:
        if (!is_ascii(c)) return found.at(i);
        if (c == '\\' && quote == '"') {
          ++i;
        } else if (c == quote && three_quotes(i)) {
          i += 2;
          for (int own = 0; own < 2 && i + 1 < text.size() && text[i + 1] == quote; ++own) ++i;  // part of the string
          inside = Inside::Nothing;
        }
        break;
    }
  }
  return found;
}

}  // namespace

void check_toml_text(std::string_view text, const std::string& origin) {
  const auto [stray, dots] = look_through(text);
  if (dots > kMaxDots) {
    throw InputError(
        fmt::format("{}: is not a configuration: it has more than {} dots that are not in strings, comments and "
                    "numbers; give a TOML file, as gyre init writes it",
                    origin, kMaxDots));
  }
  if (stray == std::string_view::npos) return;
  throw InputError(fmt::format(
      "{}:{}: has {}", origin, std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(stray), '\n') + 1,
      is_ascii(text[stray]) ? "a quote in the middle of a word"
                            : "a character beyond ASCII that is neither in a comment nor in a string of one line"));
}

}  // namespace gyre
