#include "gyre/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

namespace gyre {
namespace {

// As names are compared: without case, and with one separator of words.
std::string folded(std::string_view name) {
  std::string folded(name);
  std::ranges::transform(folded, folded.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return folded;
}

// How many slips turn `a` into `b`: a letter too many, missing or another, or two neighbours in the wrong order.
size_t slips_between(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The slips after which a name of this length is still recognised: more would make most short names one another.
size_t forgiven(size_t length) {
  constexpr size_t kShort = 5;
  return length < 2 ? 0 : length <= kShort ? 1 : 2;
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string given = folded(name);
  std::optional<size_t> fewest;
  const std::string* found = nullptr;
  for (const std::string& candidate : candidates) {
    const size_t slips = slips_between(given, folded(candidate));
    if (slips > forgiven(candidate.size()) || (fewest && slips >= *fewest)) continue;
    fewest = slips;
    found = &candidate;
  }
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  if (const auto near = nearest(name, candidates)) return fmt::format("; did you mean '{}'?", *near);
  return candidates.empty() ? "" : "; known: " + join(candidates, ", ");
}

std::string human_bytes(double bytes, int digits) {
  constexpr std::array<const char*, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.{}f} {}", bytes, digits, units[unit]);
}

std::string human_duration(double seconds) {
  const auto total = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string human_count(double count) {
  if (count >= 1e15) return fmt::format("{:.3g}", count);
  if (count >= 1e12) return fmt::format("{:.1f}T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string counted(int64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  const auto ends_in = [](std::string_view word, std::string_view letters) {
    return !word.empty() && letters.find(word.back()) != std::string_view::npos;
  };
  const std::string_view stem = noun.substr(0, noun.size() - 1);
  if (ends_in(noun, "y") && !ends_in(stem, "aeiou")) return fmt::format("{} {}ies", count, stem);
  return fmt::format("{} {}{}", count, noun, ends_in(noun, "hsx") ? "es" : "s");
}

std::string printable(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto code = static_cast<unsigned char>(c);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (code == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009f, control characters too
      shown += fmt::format("\\x{:02x}", next);
      ++i;
    } else if (c == '\n') {
      shown += "\\n";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c & 0x80) != 0 ||
           std::string_view("_-+./,:@%").find(c) != std::string_view::npos;
  };
  const bool controls = printable(text) != text;
  if (!controls && !text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  if (controls) {
    std::string word = "$'";
    for (const char c : text) {
      word +=
          is_plain(c) && (c & 0x80) == 0 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return word + "'";
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace gyre
