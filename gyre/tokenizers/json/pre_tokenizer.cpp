#include "gyre/tokenizers/json/pre_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/json/unicode.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

enum class Behavior { Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous };

// Splits at the matches of a pattern.
class Split final : public PreTokenizer {
 public:
  Split(Regex pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::string_view word, bool, Words& words, RegexScratch& scratch) const override {
    size_t pending = 0;  // start of the text that has not been emitted
    bool last = false;   // whether the part before was a delimiter
    const auto visit = [&](size_t begin, size_t end, bool match) {
      if (begin == end) return;
      const bool delimiter = match != invert_;
      switch (behavior_) {
        case Behavior::Isolated:
          emit(word, begin, end, words);
          break;
        case Behavior::Removed:
          if (!delimiter) emit(word, begin, end, words);
          break;
        case Behavior::MergedWithPrevious:
          if (delimiter && !last) {
            emit(word, pending, end, words);
            pending = end;
          } else if (delimiter) {
            emit(word, begin, end, words);
            pending = end;
          } else {
            emit(word, pending, begin, words);
            pending = begin;
          }
          break;
        case Behavior::MergedWithNext:
          if (delimiter || !last) {
            emit(word, pending, begin, words);
            pending = begin;
          }
          break;
        case Behavior::Contiguous:
          if (delimiter != last) {
            emit(word, pending, begin, words);
            pending = begin;
          }
          break;
      }
      last = delimiter;
    };
    for (size_t at = 0; at < word.size();) {
      const auto [begin, end] = pattern_.find(word, at, scratch);
      visit(at, begin, false);
      visit(begin, end, true);
      at = end;
    }
    if (behavior_ != Behavior::Isolated && behavior_ != Behavior::Removed) emit(word, pending, word.size(), words);
  }

 private:
  static void emit(std::string_view word, size_t begin, size_t end, Words& words) {
    if (begin < end) words.next.push_back(word.substr(begin, end - begin));
  }
  Regex pattern_;
  Behavior behavior_;
  bool invert_;
};

// Puts a blank before a word that has none.
class PrefixBlank final : public PreTokenizer {
 public:
  void split(std::string_view word, bool, Words& words, RegexScratch&) const override {
    if (word.starts_with(' ')) return words.next.push_back(word);
    words.next.emplace_back(words.made.emplace_back(fmt::format(" {}", word)));
  }
};

// Replaces blanks by a sign, at which words begin.
class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { Always, First, Never };
  Metaspace(std::string sign, Prepend prepend, bool split) : sign_(std::move(sign)), prepend_(prepend), split_(split) {}

  void split(std::string_view word, bool first, Words& words, RegexScratch&) const override {
    std::string text;
    for (const char c : word) c == ' ' ? text.append(sign_) : text.append(1, c);
    if ((prepend_ == Prepend::Always || (prepend_ == Prepend::First && first)) && !text.starts_with(sign_)) {
      text.insert(0, sign_);
    }
    const std::string_view replaced = words.made.emplace_back(std::move(text));
    size_t begin = 0;
    while (split_) {
      const size_t next = replaced.find(sign_, begin == 0 && !replaced.starts_with(sign_) ? 0 : begin + sign_.size());
      if (next == std::string_view::npos) break;
      if (next > begin) words.next.push_back(replaced.substr(begin, next - begin));
      begin = next;
    }
    if (begin < replaced.size()) words.next.push_back(replaced.substr(begin));
  }

 private:
  std::string sign_;
  Prepend prepend_;
  bool split_;
};

// Splits at blanks, and makes every punctuation mark a word.
class BertPreTokenizer final : public PreTokenizer {
 public:
  void split(std::string_view word, bool, Words& words, RegexScratch&) const override {
    size_t begin = 0;
    const auto emit = [&](size_t end) {
      if (begin < end) words.next.push_back(word.substr(begin, end - begin));
    };
    for (size_t at = 0; at < word.size();) {
      const Character c = character_at(word, at);
      const size_t next = at + c.bytes;
      if (unicode::is_white_space(c.code)) {
        emit(at);
        begin = next;
      } else if (unicode::is_punctuation(c.code)) {
        emit(at);
        words.next.push_back(word.substr(at, c.bytes));
        begin = next;
      }
      at = next;
    }
    emit(word.size());
  }
};

Behavior behavior_of(const JsonFields<Json>& fields, const std::string& name) {
  static const std::pair<const char*, Behavior> kBehaviors[] = {{"Isolated", Behavior::Isolated},
                                                                {"Removed", Behavior::Removed},
                                                                {"MergedWithPrevious", Behavior::MergedWithPrevious},
                                                                {"MergedWithNext", Behavior::MergedWithNext},
                                                                {"Contiguous", Behavior::Contiguous}};
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) return behavior;
  }
  fields.fail(fmt::format("the behavior '{}' is unknown to this gyre", printable(name)));
}

void add_steps(const Json& json, const std::string& where, PreTokenizers& result) {
  if (json.is_null()) return;
  JsonFields fields(json, where);
  const auto type = fields.need<std::string>("type");
  const auto add = [&]<typename Step>(std::unique_ptr<Step> step) {
    if (result.byte_level) fields.fail(fmt::format("'{}' behind a ByteLevel is unknown to this gyre", printable(type)));
    result.steps.push_back(std::move(step));
  };
  const auto split_at = [&](const char* pattern, Behavior behavior, bool invert) {
    add(std::make_unique<Split>(Regex(pattern, where), behavior, invert));
  };
  if (type == "Sequence") {
    const Json& list = fields.at("pretokenizers");
    if (!list.is_array()) fields.fail("'pretokenizers' must be a list");
    for (const Json& step : list) add_steps(step, where, result);
  } else if (type == "Split") {
    Regex pattern = parse_pattern(fields.at("pattern"), where);
    // Every empty match would split a word there.
    if (pattern.may_be_empty()) fields.fail("'pattern' can match nothing, which is unknown to this gyre");
    add(std::make_unique<Split>(std::move(pattern), behavior_of(fields, fields.need<std::string>("behavior")),
                                flag_of(json, "invert", false)));
  } else if (type == "ByteLevel") {
    if (flag_of(json, "add_prefix_space", true)) {
      add(std::make_unique<PrefixBlank>());
      result.prefixes = true;
    }
    if (flag_of(json, "use_regex", true)) split_at(kGpt2, Behavior::Isolated, false);
    result.byte_level = true;
  } else if (type == "BertPreTokenizer") {
    add(std::make_unique<BertPreTokenizer>());
  } else if (type == "Whitespace") {
    // \w means that of Rust's regex here, which includes the joiners.
    split_at(R"([\w\x{200c}\x{200d}]+|[^\w\x{200c}\x{200d}\s]+)", Behavior::Removed, true);
  } else if (type == "WhitespaceSplit") {
    split_at(R"(\s)", Behavior::Removed, false);
  } else if (type == "Digits") {
    split_at(flag_of(json, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", Behavior::Isolated, false);
  } else if (type == "Punctuation") {
    std::string behavior = "Isolated";
    fields.read("behavior", behavior);
    split_at(R"([\p{P}$+<=>^`|~])", behavior_of(fields, behavior), false);
  } else if (type == "Metaspace") {
    auto scheme = std::string(flag_of(json, "add_prefix_space", true) ? "always" : "never");
    fields.read("prepend_scheme", scheme);
    std::string sign(kBlankSign);
    fields.read("replacement", sign);
    if (sign.empty() || sign.size() != character_at(sign, 0).bytes) fields.fail("'replacement' is no single character");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      fields.fail(fmt::format("the prepend_scheme '{}' is unknown to this gyre", printable(scheme)));
    }
    if (scheme == "first") {
      // A sign that an earlier one has put there begins where the document begins, and so does what follows the sign.
      if (result.replaces_blanks) fields.fail("the prepend_scheme 'first' behind a Metaspace is unknown to this gyre");
      result.marks_first = result.steps.size();
    }
    result.replaces_blanks = true;
    result.prefixes = result.prefixes || scheme != "never";
    add(std::make_unique<Metaspace>(sign,
                                    scheme == "always"  ? Metaspace::Prepend::Always
                                    : scheme == "first" ? Metaspace::Prepend::First
                                                        : Metaspace::Prepend::Never,
                                    flag_of(json, "split", true)));
  } else {
    fields.fail(fmt::format("the type '{}' is unknown to this gyre", printable(type)));
  }
}

}  // namespace

PreTokenizers PreTokenizers::parse(const Json& json, const std::string& origin) {
  PreTokenizers result;
  add_steps(json, origin + ": pre_tokenizer", result);
  return result;
}

}  // namespace gyre
