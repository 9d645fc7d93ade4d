#include "gyre/core/toml_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr int64_t kMaxDots = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBeforeString = " \t\r\n=,[{\xbf";  // the last byte is the end of a byte order mark

enum class Inside { Nothing, Comment, String, LongString };

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// The position of the first character that the library must not see, or npos.
size_t find_stray(std::string_view text) {
  Inside inside = Inside::Nothing;
  char quote = 0;
  const auto three_quotes = [&](size_t at) { return text.substr(at, 3) == std::string(3, quote); };
  for (size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (inside) {
      case Inside::Nothing:
        if (!is_ascii(c)) return i;
        if (c == '#') inside = Inside::Comment;
        if (c != '"' && c != '\'') break;
        // Within a word a quote starts no string: the library reads on to the word's end.
        if (i > 0 && kBeforeString.find(text[i - 1]) == std::string_view::npos) return i;
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
        if (!is_ascii(c)) return i;
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
  return std::string_view::npos;
}

}  // namespace

void check_toml_text(std::string_view text, const std::string& origin) {
  if (std::count(text.begin(), text.end(), '.') > kMaxDots) {
    throw InputError(
        fmt::format("{}: is not a configuration: it has more than {} dots; give a TOML file, as gyre init writes it",
                    origin, kMaxDots));
  }
  const size_t stray = find_stray(text);
  if (stray == std::string_view::npos) return;
  throw InputError(fmt::format(
      "{}:{}: has {}", origin, std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(stray), '\n') + 1,
      is_ascii(text[stray]) ? "a quote in the middle of a word"
                            : "a character beyond ASCII that is neither in a comment nor in a string of one line"));
}

}  // namespace gyre
