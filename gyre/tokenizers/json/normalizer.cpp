#include "gyre/tokenizers/json/normalizer.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/json/unicode.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

template <typename Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  for (size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    visit(c.code);
    at += c.bytes;
  }
}

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(unicode::Form form) : form_(form) {}
  std::string apply(std::string text, const NormalizerUse&) const override { return unicode::normalize(text, form_); }
  bool keeps_beginning() const override { return true; }

 private:
  unicode::Form form_;
};

class Lowercase final : public Normalizer {
 public:
  std::string apply(std::string text, const NormalizerUse&) const override {
    std::string out;
    out.reserve(text.size());
    for_each_character(text, [&](char32_t c) { unicode::append_lowercase(out, c); });
    return out;
  }
  bool keeps_beginning() const override { return true; }
};

// Removes marks only; an earlier step must decompose characters that include them.
class StripAccents final : public Normalizer {
 public:
  std::string apply(std::string text, const NormalizerUse&) const override {
    std::string out;
    out.reserve(text.size());
    for_each_character(text, [&](char32_t c) {
      if (!unicode::is_mark(c)) append_character(out, c);
    });
    return out;
  }
  bool keeps_beginning() const override { return false; }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string apply(std::string text, const NormalizerUse&) const override {
    size_t begin = 0, end = 0;
    bool seen = false;
    for (size_t at = 0; at < text.size();) {
      const Character c = character_at(text, at);
      if (!unicode::is_white_space(c.code)) {
        if (!seen) begin = at;
        seen = true;
        end = at + c.bytes;
      }
      at += c.bytes;
    }
    if (!seen) return left_ || right_ ? "" : text;
    if (!left_) begin = 0;
    if (!right_) end = text.size();
    return text.substr(begin, end - begin);
  }
  bool keeps_beginning() const override { return !left_; }

 private:
  bool left_, right_;
};

class Replace final : public Normalizer {
 public:
  Replace(Regex pattern, std::string content, bool keeps_beginning)
      : pattern_(std::move(pattern)), content_(std::move(content)), keeps_beginning_(keeps_beginning) {}
  std::string apply(std::string text, const NormalizerUse& use) const override {
    std::string out;
    for (size_t at = 0; at < text.size() && out.size() <= use.max_bytes;) {
      const auto [begin, end] = pattern_.find(text, at, use.scratch);
      out.append(text, at, begin - at);
      if (begin < end) out += content_;
      at = end;
    }
    return out;
  }
  bool keeps_beginning() const override { return keeps_beginning_; }

 private:
  Regex pattern_;
  std::string content_;
  bool keeps_beginning_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  std::string apply(std::string text, const NormalizerUse& use) const override {
    return text.empty() || use.continues ? text : content_ + text;
  }
  bool keeps_beginning() const override { return true; }

 private:
  std::string content_;
};

// As BERT does: no control characters, one kind of blank, blanks around ideographs, no accents, lower case.
class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(bool clean, bool ideographs, bool strip, bool lower)
      : clean_(clean), ideographs_(ideographs), strip_(strip), lower_(lower) {}
  std::string apply(std::string text, const NormalizerUse&) const override {
    std::string out, parts;
    out.reserve(text.size());
    for_each_character(text, [&](char32_t c) {
      const bool blank = c == '\t' || c == '\n' || c == '\r';
      if (clean_) {
        if (c == 0 || c == 0xFFFD || (!blank && unicode::is_other(c))) return;
        if (blank || unicode::is_white_space(c)) c = ' ';
      }
      if (c < 0x80) {
        out.push_back(static_cast<char>(lower_ && c >= 'A' && c <= 'Z' ? c + 32 : c));
        return;
      }
      const bool apart = ideographs_ && unicode::is_ideograph(c);
      if (apart) out += ' ';
      if (strip_) {
        parts.clear();
        unicode::append_without_accents(parts, c);
        for_each_character(parts, [&](char32_t part) { add(out, part); });
      } else {
        add(out, c);
      }
      if (apart) out += ' ';
    });
    return out;
  }
  bool keeps_beginning() const override { return false; }

 private:
  void add(std::string& out, char32_t c) const {
    lower_ ? unicode::append_lowercase(out, c) : append_character(out, c);
  }
  bool clean_, ideographs_, strip_, lower_;
};

// Whether a pattern, which was parsed, matches one certain character.
bool is_one_character(const Json& pattern) {
  const auto text = pattern.value("String", std::string());
  return !text.empty() && text.size() == character_at(text, 0).bytes;
}

void add_steps(const Json& json, const std::string& where, std::vector<std::unique_ptr<Normalizer>>& steps) {
  if (json.is_null()) return;
  JsonFields fields(json, where);
  const auto type = fields.need<std::string>("type");
  static const std::pair<const char*, unicode::Form> kForms[] = {{"NFC", unicode::Form::NFC},
                                                                 {"NFD", unicode::Form::NFD},
                                                                 {"NFKC", unicode::Form::NFKC},
                                                                 {"NFKD", unicode::Form::NFKD}};
  for (const auto& [name, form] : kForms) {
    if (type == name) return steps.push_back(std::make_unique<UnicodeForm>(form));
  }
  if (type == "Sequence") {
    const Json& list = fields.at("normalizers");
    if (!list.is_array()) fields.fail("'normalizers' must be a list");
    for (const Json& step : list) add_steps(step, where, steps);
  } else if (type == "Lowercase") {
    steps.push_back(std::make_unique<Lowercase>());
  } else if (type == "StripAccents") {
    steps.push_back(std::make_unique<StripAccents>());
  } else if (type == "Strip") {
    steps.push_back(std::make_unique<Strip>(flag_of(json, "strip_left", true), flag_of(json, "strip_right", true)));
  } else if (type == "Replace") {
    const Json& pattern = fields.at("pattern");
    Regex regex = parse_pattern(pattern, where);
    // The library replaces each empty match too.
    if (regex.may_be_empty()) fields.fail("'pattern' can match nothing, which is unknown to this gyre");
    auto content = fields.need<std::string>("content");
    const bool keeps_beginning = !content.empty() && is_one_character(pattern);
    steps.push_back(std::make_unique<Replace>(std::move(regex), std::move(content), keeps_beginning));
  } else if (type == "Prepend") {
    steps.push_back(std::make_unique<Prepend>(fields.need<std::string>("prepend")));
  } else if (type == "BertNormalizer") {
    const bool lower = flag_of(json, "lowercase", true);
    steps.push_back(std::make_unique<BertNormalizer>(flag_of(json, "clean_text", true),
                                                     flag_of(json, "handle_chinese_chars", true),
                                                     flag_of(json, "strip_accents", lower), lower));
  } else {
    fields.fail(fmt::format("the type '{}' is unknown to this gyre", printable(type)));
  }
}

}  // namespace

std::vector<std::unique_ptr<Normalizer>> parse_normalizer(const Json& json, const std::string& origin) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  add_steps(json, origin + ": normalizer", steps);
  return steps;
}

}  // namespace gyre
