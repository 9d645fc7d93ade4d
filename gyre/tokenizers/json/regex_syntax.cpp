#include "gyre/tokenizers/json/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/unicode.h"

namespace gyre {
namespace {

// Classes as lists within [ ]. None ends in a single character, because a '-' after it would make a range. Oniguruma's
// \s is Unicode's white space; PCRE2's has one more, U+180E.
constexpr std::string_view kBlanks =
    R"(\x20\x{85}\x{a0}\x{1680}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{2000}-\x{200a}\x09-\x0d)";
// Alphabetic, marks, digits, connecting punctuation. PCRE2's \w has all numbers instead, and not all of the rest.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// What \w also matches outside of [ ], by a table of Latin-1: superscripts and fractions.
constexpr std::string_view kWordsOfLatin1 = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

constexpr std::pair<std::string_view, std::string_view> kPosixClasses[] = {
    {"alpha", R"(\p{Alphabetic})"},
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"upper", R"(\p{Uppercase})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},  // Oniguruma's since 6.9.9; before, \p{P}
    {"digit", R"(\p{Nd})"},
    {"cntrl", R"(\p{Cc})"},
    {"blank", R"(\x09\p{Zs})"},
    {"xdigit", "0-9a-fA-F"},
    {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
    {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
    {"space", kBlanks},
    {"word", kWord},
};

constexpr size_t kMaxBytes = 1 << 18;  // of the result

// Properties that both have under the same name.
constexpr std::string_view kProperties[] = {"Any", "Alphabetic", "Lowercase", "Uppercase", "White_Space", "Emoji"};

// Pairs that Oniguruma, but not PCRE2, matches with one character when case is ignored: ß, ẞ, and the ligatures.
constexpr std::string_view kFoldedPairs[] = {"ss", "ff", "fi", "fl", "st"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hexadecimal(char c) {
  return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      add_next();
      if (out_.size() > kMaxBytes) throw InputError(fmt::format("{}: the pattern is too long", where_));
    }
    return std::move(out_);
  }

 private:
  struct Group {
    size_t begin;  // in out_
    bool ignores_case;
  };
  static constexpr size_t kNone = std::string_view::npos;

  [[noreturn]] void refuse(std::string_view what) const {
    throw InputError(fmt::format("{}: the pattern has '{}', which this gyre does not know", where_, printable(what)));
  }
  std::string_view rest() const { return pattern_.substr(at_); }
  // The characters from `begin` on, as long as is() holds.
  template <typename Is>
  std::string_view span(size_t begin, Is&& is) const {
    size_t end = begin;
    while (end < pattern_.size() && is(pattern_[end])) ++end;
    return pattern_.substr(begin, end - begin);
  }
  std::string_view next_character() const {
    return rest().substr(0, std::max<size_t>(character_at(pattern_, at_).bytes, 1));
  }

  // Adds something that a quantifier after it may repeat.
  void add_item(std::string_view text) {
    item_ = out_.size();
    out_ += text;
    begins_branch_ = false;
  }
  void add_assertion(std::string_view text) {
    item_ = kNone;
    out_ += text;
    begins_branch_ = false;
  }

  void add_next() {
    const char before = std::exchange(literal_, '\0');
    switch (pattern_[at_]) {
      case '\\':
        return add_escape();
      case '[':
        return add_class();
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '|':
        out_ += pattern_[at_++];
        item_ = kNone;
        begins_branch_ = true;
        return;
      case '^':
      case '$':
        return add_assertion(pattern_.substr(at_++, 1));
      case '.':
        return add_item(pattern_.substr(at_++, 1));
      case '*':
      case '+':
      case '?':
      case '{':
        return add_quantifier();
      default:
        return add_literal(before);
    }
  }

  void add_literal(char before) {
    const std::string_view c = next_character();
    check_folding(c);
    at_ += c.size();
    add_item(c);
    if (!ignores_case_ || !is_letter(c[0])) return;
    literal_ = static_cast<char>(c[0] | 32);
    const char pair[] = {before, literal_};
    for (const std::string_view folded : kFoldedPairs) {
      if (folded == std::string_view(pair, 2)) refuse(fmt::format("(?i) with {}", folded));
    }
  }

  // When case is ignored, Oniguruma may match one character with several.
  void check_folding(std::string_view c) const {
    if (ignores_case_ && c.size() > 1 && unicode::is_word(character_at(c, 0).code))
      refuse(fmt::format("(?i) with {}", c));
  }

  void add_quantifier() {
    size_t end = at_ + 1;
    std::string repeat(1, pattern_[at_]);
    const bool interval = pattern_[at_] == '{';
    bool fixed = false;
    if (interval) {
      const std::string_view lower = span(end, is_digit);
      end += lower.size();
      fixed = end >= pattern_.size() || pattern_[end] != ',';
      const std::string_view upper = fixed ? std::string_view() : span(end + 1, is_digit);
      end += fixed ? 0 : 1 + upper.size();
      if (end >= pattern_.size() || pattern_[end] != '}' || (lower.empty() && upper.empty())) {
        ++at_;
        return add_item("\\{");
      }
      ++end;
      repeat = fmt::format("{{{}{}{}}}", lower.empty() ? "0" : lower, fixed ? "" : ",", upper);
    }
    if (item_ == kNone) refuse(pattern_.substr(at_, end - at_));
    out_ += repeat;
    at_ = end;
    const char suffix = at_ < pattern_.size() ? pattern_[at_] : '\0';
    if (suffix == '?' || suffix == '+') {
      // After an interval, '+' is not possessive but repeats the interval; so does '?' after a fixed count.
      if (interval && (suffix == '+' || fixed)) {
        out_.insert(item_, "(?:");
        out_ += ')';
      }
      out_ += suffix;
      ++at_;
    }
    item_ = kNone;
  }

  void open_group() {
    const size_t begin = out_.size();
    const bool ignored_case = ignores_case_;
    std::string_view opening = "(";
    if (rest().starts_with("(*")) refuse("(*");
    if (rest().starts_with("(?")) {
      opening = {};  // add_options() writes the opening of a group with options
      for (const std::string_view known : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
        if (rest().starts_with(known)) opening = known;
      }
      if (opening.empty() && add_options()) return;  // the options apply to what follows; there is no group
    }
    out_ += opening;
    at_ += opening.size();
    groups_.push_back({begin, ignored_case});
    item_ = kNone;
    begins_branch_ = true;
  }

  // Adds "(?i)", or "(?i:", which begins a group. Returns true for the former. Ruby's m is PCRE2's s.
  bool add_options() {
    const std::string_view letters = span(at_ + 2, [](char c) { return is_letter(c) || c == '-'; });
    const size_t end = at_ + 2 + letters.size();
    const char last = end < pattern_.size() ? pattern_[end] : '\0';
    const std::string_view construct = pattern_.substr(at_, end + 1 - at_);
    const bool known =
        std::all_of(letters.begin(), letters.end(), [](char c) { return c == 'i' || c == 'm' || c == '-'; });
    const bool alone = last == ')';
    // Later in a branch, "(?i)" has a wider scope in Ruby than in PCRE2.
    if (!known || (!alone && last != ':') || (alone && !begins_branch_)) refuse(construct);
    bool on = true;
    for (const char c : letters) {
      if (c == '-') on = false;
      if (c == 'i') ignores_case_ = on;
    }
    std::string options(construct);
    std::replace(options.begin(), options.end(), 'm', 's');
    out_ += options;
    at_ = end + 1;
    return alone;
  }

  void close_group() {
    out_ += pattern_[at_++];
    begins_branch_ = false;
    if (groups_.empty()) return;
    item_ = groups_.back().begin;
    ignores_case_ = groups_.back().ignores_case;
    groups_.pop_back();
  }

  void add_escape() {
    if (at_ + 1 == pattern_.size()) return add_item(pattern_.substr(at_++, 1));
    const char letter = pattern_[at_ + 1];
    const std::string word = fmt::format("[{}{}]", kWordsOfLatin1, kWord);
    at_ += 2;
    switch (letter) {
      case 's':
        return add_item(fmt::format("[{}]", kBlanks));
      case 'S':
        return add_item(fmt::format("[^{}]", kBlanks));
      case 'w':
        return add_item(word);
      case 'W':
        return add_item(fmt::format("[^{}{}]", kWordsOfLatin1, kWord));
      case 'b':
        return add_assertion(fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word));
      case 'B':
        return add_assertion(fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word));
      case 'A':
      case 'z':
      case 'Z':
        return add_assertion(std::string{'\\', letter});
      default:
        at_ -= 2;
        return add_item(character_escape());
    }
  }

  // Escapes that mean the same inside and outside of [ ].
  std::string character_escape() {
    const char letter = pattern_[at_ + 1];
    at_ += 2;
    if (letter == 'p' || letter == 'P') return property(letter);
    if (letter == 'v') return "\\x0b";
    if (letter == 'x' || letter == 'u') return code(letter);
    if (std::string_view("dDtnrfae").find(letter) != kNone) return {'\\', letter};
    if (is_letter(letter) || is_digit(letter)) refuse(std::string{'\\', letter});
    --at_;
    const std::string_view c = next_character();
    check_folding(c);
    at_ += c.size();
    return fmt::format("\\{}", c);
  }

  // A character by its code: \x41, \x{e9}, \u00e9. Without braces, \x beyond ASCII is a byte and is refused.
  std::string code(char letter) {
    const bool braces = letter == 'x' && rest().starts_with('{');
    std::string_view digits = span(at_ + (braces ? 1 : 0), is_hexadecimal);
    if (!braces) digits = digits.substr(0, letter == 'x' ? 2 : 4);
    const size_t end = at_ + digits.size() + (braces ? 2 : 0);
    const auto construct = [&] {
      return fmt::format("\\{}{}", letter, pattern_.substr(at_, std::max<size_t>(end - at_, 1)));
    };
    const bool whole = braces ? pattern_.substr(0, end).ends_with('}') : letter == 'x' || digits.size() == 4;
    if (digits.empty() || digits.size() > 6 || !whole) refuse(construct());
    const auto number = static_cast<char32_t>(std::stoul(std::string(digits), nullptr, 16));
    if (!braces && letter == 'x' && number >= 0x80) refuse(construct());
    if (ignores_case_ && number >= 0x80 && unicode::is_word(number)) refuse(fmt::format("(?i) with {}", construct()));
    at_ = end;
    return fmt::format("\\x{{{}}}", digits);
  }

  // General categories stay unchanged. For scripts, PCRE2 includes characters that several scripts share and Oniguruma
  // does not, so "sc:" is added.
  std::string property(char letter) {
    const size_t end = pattern_.find('}', at_);
    if (!rest().starts_with('{') || end == kNone) refuse(fmt::format("\\{}{}", letter, rest().substr(0, 1)));
    std::string_view name = pattern_.substr(at_ + 1, end - at_ - 1);
    const auto construct = [&] { return fmt::format("\\{}{}", letter, pattern_.substr(at_, end + 1 - at_)); };
    if (ignores_case_) refuse(fmt::format("(?i) with {}", construct()));
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const auto allowed = [](char c) { return is_letter(c) || c == '_' || c == ' ' || c == '-'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), allowed)) refuse(construct());
    at_ = end + 1;
    const char* sign = negated ? "^" : "";
    if (name.size() <= 2) return fmt::format("\\{}{{{}{}}}", letter, sign, name);
    for (const std::string_view known : kProperties) {
      if (is_same_name(name, known)) return fmt::format("\\{}{{{}{}}}", letter, sign, known);
    }
    return fmt::format("\\{}{{{}sc:{}}}", letter, sign, name);
  }

  static bool is_same_name(std::string_view a, std::string_view b) {
    const auto plain = [](std::string_view name) {
      std::string letters;
      for (const char c : name) {
        if (is_letter(c)) letters.push_back(static_cast<char>(c | 32));
      }
      return letters;
    };
    return plain(a) == plain(b);
  }

  // The content of a class: one list for PCRE2, besides the complements of other lists (\S, \W).
  struct ClassParts {
    std::string list;
    std::vector<std::string> complements;
  };

  void add_class() {
    ++at_;
    const bool negated = rest().starts_with('^');
    if (negated) ++at_;
    ClassParts parts;
    if (rest().starts_with(']')) {
      parts.list = "\\]";
      ++at_;
    }
    while (at_ < pattern_.size() && pattern_[at_] != ']') add_member(parts);
    if (at_ == pattern_.size()) refuse("[ without ]");
    ++at_;
    add_item(written(parts, negated));
  }

  static std::string written(const ClassParts& parts, bool negated) {
    std::string list = fmt::format("[{}{}]", negated ? "^" : "", parts.list);
    if (parts.complements.empty()) return list;
    // Negated: the character is in every complemented list, and not in `list`. Otherwise it is outside some
    // complemented list, or in `list`.
    std::vector<std::string> sets;
    for (const std::string& excluded : parts.complements) {
      sets.push_back(fmt::format("[{}{}]", negated ? "" : "^", excluded));
    }
    if (!negated) {
      if (!parts.list.empty()) sets.push_back(list);
      return fmt::format("(?:{})", join(sets, "|"));
    }
    return fmt::format("(?:(?={}){})", join(sets, ")(?="), parts.list.empty() ? "(?s:.)" : list);
  }

  void add_member(ClassParts& parts) {
    const std::string_view left = rest();
    if (left.starts_with("&&")) refuse("&&");
    if (left.starts_with("[:")) return add_posix_class(parts);
    if (left.starts_with("[")) refuse("[ within [");
    if (left.starts_with("\\") && left.size() > 1) {
      switch (left[1]) {
        case 's':
          return add_list(parts, kBlanks, false, 2);
        case 'S':
          return add_list(parts, kBlanks, true, 2);
        case 'w':
          return add_list(parts, kWord, false, 2);
        case 'W':
          return add_list(parts, kWord, true, 2);
        case 'b':
          return add_list(parts, "\\x08", false, 2);
        default:
          parts.list += character_escape();
          return;
      }
    }
    const std::string_view c = next_character();
    check_folding(c);
    at_ += c.size();
    if (c == "^") parts.list += '\\';
    parts.list += c;
  }

  void add_posix_class(ClassParts& parts) {
    const size_t end = pattern_.find(":]", at_);
    if (end == kNone) refuse("[ within [");
    const std::string_view construct = pattern_.substr(at_, end + 2 - at_);
    const bool complement = construct.starts_with("[:^");
    const std::string_view name = construct.substr(complement ? 3 : 2, construct.size() - (complement ? 5 : 4));
    if (ignores_case_) refuse(fmt::format("(?i) with {}", construct));
    for (const auto& [known, list] : kPosixClasses) {
      if (name == known) return add_list(parts, list, complement, construct.size());
    }
    refuse(construct);
  }

  void add_list(ClassParts& parts, std::string_view list, bool complement, size_t taken) {
    // Moving a list out would make a range of the characters before and after the dash.
    const bool dash_before = complement && parts.list.ends_with('-');
    at_ += taken;
    if (dash_before || (complement && rest().starts_with('-'))) refuse("- beside a class within [");
    if (complement) {
      parts.complements.emplace_back(list);
    } else {
      parts.list += list;
    }
  }

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
  std::string out_;
  size_t item_ = kNone;        // where in out_ the item begins that a quantifier would repeat
  bool begins_branch_ = true;  // nothing stands between the last '(' or '|' and here
  bool ignores_case_ = false;
  char literal_ = '\0';  // the letter just before, in lower case, if case is ignored
  std::vector<Group> groups_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern, const std::string& where) {
  return Translation(pattern, where).run();
}

}  // namespace gyre
