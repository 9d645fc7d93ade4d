#include "gyre/tokenizers/json/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/added_tokens.h"
#include "gyre/tokenizers/json/model.h"
#include "gyre/tokenizers/json/normalizer.h"
#include "gyre/tokenizers/json/pre_tokenizer.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"
#include "gyre/tokenizers/word_cache.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

struct Scratch {
  RegexScratch regex;
  MergeScratch merges;
  WordCache cache;
  Words words;
};

// How long a normalizer may make a text: kMaxGrowth times its bytes plus kFreeGrowth, for short texts. The longest
// decomposition of one character has eleven times its bytes.
constexpr size_t kMaxGrowth = 64;
constexpr size_t kFreeGrowth = 4096;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Hugging Face's library does not go by the numbers of added tokens. What is in the vocabulary keeps its number; the
// others get those that follow, in the list's order. Throws InputError where that is not what the file says.
void check_numbers(const std::vector<AddedToken>& added, const Vocabulary& vocabulary, const std::string& origin) {
  const std::string where = origin + ": added_tokens";
  std::set<int64_t> taken;  // by the vocabulary, behind its size: it may leave numbers out
  auto next = static_cast<int64_t>(vocabulary.size());
  for (const auto& [text, id] : vocabulary) {
    if (id >= next) taken.insert(id);
  }
  std::set<std::string_view> texts;
  for (const AddedToken& token : added) {
    const std::string name = printable(token.content);
    if (!texts.insert(token.content).second) throw InputError(fmt::format("{}: '{}' is there twice", where, name));
    const auto known = vocabulary.find(token.content);
    if (known != vocabulary.end() && known->second != token.id) {
      throw InputError(fmt::format("{}: '{}' has the number {}, and the vocabulary gives it {}", where, name, token.id,
                                   known->second));
    }
    if (known == vocabulary.end() && token.id != next) {
      throw InputError(fmt::format("{}: '{}' has the number {}, and {} is the next one", where, name, token.id, next));
    }
    if (known == vocabulary.end() && taken.contains(token.id)) {
      throw InputError(
          fmt::format("{}: '{}' has the number {}, which a token of the vocabulary has", where, name, token.id));
    }
    next = std::max(next, token.id + 1);
  }
}

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(const Json& json, const std::string& origin)
      : origin_(origin),
        normalizers_(parse_normalizer(json.value("normalizer", Json()), origin)),
        pre_tokenizers_(PreTokenizers::parse(json.value("pre_tokenizer", Json()), origin)),
        model_(parse_word_model(json.value("model", Json()), pre_tokenizers_.byte_level, origin)),
        added_(parse_added_tokens(json.value("added_tokens", Json()), origin)) {
    for (const auto& [token, id] : model_->vocabulary()) size_ = std::max<int64_t>(size_, id + 1);
    std::vector<AddedToken> raw, normalized;
    for (AddedToken token : added_) {
      if (token.id >= kMaxTokenIds) {
        throw InputError(fmt::format("{}: added_tokens: the token '{}' has no number from 0 to {}", origin,
                                     printable(token.content), kMaxTokenIds - 1));
      }
      size_ = std::max(size_, token.id + 1);
      added_texts_[static_cast<int32_t>(token.id)] = token.content;
      if (token.normalized) {
        const auto scratch = scratches_.lend();
        token.content = normalize(token.content, false, *scratch);
      }
      (token.normalized ? normalized : raw).push_back(std::move(token));
    }
    check_numbers(added_, model_->vocabulary(), origin);
    raw_ = AddedTokens(std::move(raw));
    normalized_ = AddedTokens(std::move(normalized));
    check_marks();
    const Json decoder = json.value("decoder", Json());
    strips_first_ = !pre_tokenizers_.byte_level && decoder.is_object() &&
                    decoder.value("type", Json()) != "WordPiece" && has_strip(decoder);
    // Only if the blank sign is a token: otherwise it may be dropped, or be fused with unknown neighbours.
    splits_signs_ =
        pre_tokenizers_.steps.empty() && !model_->crosses_blanks() && model_->vocabulary().contains(kBlankSign);
    find_cuts();
  }

  // The id of an added token or a token of the vocabulary, by its text.
  std::optional<int32_t> find(std::string_view text) const {
    for (const auto& [id, content] : added_texts_) {
      if (content == text) return id;
    }
    const auto found = model_->vocabulary().find(text);
    return found == model_->vocabulary().end() ? std::nullopt : std::optional(found->second);
  }
  void end_documents_with(int32_t id, std::string text) {
    end_ = id;
    end_text_ = std::move(text);
  }

  int64_t vocabulary_size() const override { return size_; }
  int32_t end_of_document() const override { return end_; }
  std::string end_of_document_text() const override { return end_text_; }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override { encode(text, false, tokens); }
  void encode_rest(std::string_view text, std::vector<int32_t>& tokens) const override { encode(text, true, tokens); }

  size_t cut(std::string_view text) const override {
    for (size_t at = text.size(); at-- > 1;) {
      if (may_cut(text, at)) return at;
    }
    return 0;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    bool first = true;
    for (const int32_t token : tokens) {
      if (const auto added = added_texts_.find(token); added != added_texts_.end()) {
        if (!first && words_apart()) text += ' ';
        text += added->second;
      } else {
        model_->decode(token, first, text);
        if (first && strips_first_ && text.starts_with(' ')) text.erase(0, 1);
      }
      first = false;
    }
    return text;
  }

 private:
  bool words_apart() const { return !pre_tokenizers_.byte_level && model_->crosses_blanks() && !strips_first_; }

  // Which word begins where the document begins is known behind a normalizer only as long as nothing has cut what the
  // first character became.
  void check_marks() const {
    if (!pre_tokenizers_.marks_first || normalizers_.empty()) return;
    const bool is_whole = pre_tokenizers_.marks_first == 0 && normalized_.empty();
    if (is_whole && std::all_of(normalizers_.begin(), normalizers_.end(),
                                [](const auto& step) { return step->keeps_beginning(); })) {
      return;
    }
    throw InputError(fmt::format(
        "{}: pre_tokenizer: the prepend_scheme 'first' behind this normalizer is unknown to this gyre", origin_));
  }

  static bool has_strip(const Json& decoder) {
    const auto type = decoder.value("type", Json());
    if (type == "Strip") return decoder.value("start", Json()) != 0;
    if (type == "Metaspace") {
      return decoder.value("prepend_scheme", Json("always")) != "never" &&
             decoder.value("add_prefix_space", Json()) != false;
    }
    const Json list = decoder.value("decoders", Json());
    return list.is_array() &&
           std::any_of(list.begin(), list.end(), [](const Json& step) { return step.is_object() && has_strip(step); });
  }

  std::string normalize(std::string_view text, bool continues, Scratch& scratch) const {
    const NormalizerUse use{continues, kMaxGrowth * text.size() + kFreeGrowth, scratch.regex};
    std::string normal(text);
    for (const auto& step : normalizers_) {
      normal = step->apply(std::move(normal), use);
      if (normal.size() <= use.max_bytes) continue;
      throw InputError(fmt::format("{}: its normalizer makes a text of {} bytes more than {} times as long", origin_,
                                   text.size(), kMaxGrowth));
    }
    return normal;
  }

  // Splits a text without added tokens into words, in scratch.words.
  void split(std::string_view text, bool first, Scratch& scratch) const {
    Words& words = scratch.words;
    words.list.assign(1, text);
    words.made.clear();
    for (const auto& step : pre_tokenizers_.steps) {
      words.next.clear();
      for (const std::string_view word : words.list) {
        step->split(word, first && word.data() == text.data(), words, scratch.regex);
      }
      std::swap(words.list, words.next);
    }
  }

  void encode(std::string_view text, bool continues, std::vector<int32_t>& tokens) const {
    if (!is_utf8(text)) throw InputError("the text is not UTF-8; convert it first, for example with iconv -t UTF-8");
    const auto scratch = scratches_.lend();
    raw_.split(
        text,
        [&](std::string_view part, bool begins) {
          const std::string normal = normalizers_.empty() ? "" : normalize(part, continues && begins, *scratch);
          normalized_.split(
              normalizers_.empty() ? part : std::string_view(normal),
              [&](std::string_view piece, bool first) {
                split(piece, first && begins && !continues, *scratch);
                for (const std::string_view word : scratch->words.list) encode_word(word, tokens, *scratch);
              },
              [&](int32_t id) { tokens.push_back(id); });
        },
        [&](int32_t id) { tokens.push_back(id); });
  }

  void encode_word(std::string_view word, std::vector<int32_t>& tokens, Scratch& scratch) const {
    const auto by_model = [&](std::string_view part, std::vector<int32_t>& out) {
      model_->encode(part, out, scratch.merges);
    };
    if (!splits_signs_) return scratch.cache.encode(word, tokens, by_model);
    // There is no pre-tokenizer, and no token spans two words: split before blank signs, so that the cache helps.
    for (size_t begin = 0; begin < word.size();) {
      size_t end = begin;
      while (word.substr(end).starts_with(kBlankSign)) end += kBlankSign.size();
      end = std::min(word.find(kBlankSign, end), word.size());
      scratch.cache.encode(word.substr(begin, end - begin), tokens, by_model);
      begin = end;
    }
  }

  bool may_cut(std::string_view text, size_t at) const;
  void find_cuts();

  std::string origin_;
  std::vector<std::unique_ptr<Normalizer>> normalizers_;
  PreTokenizers pre_tokenizers_;
  std::unique_ptr<WordModel> model_;
  std::vector<AddedToken> added_;
  std::map<int32_t, std::string> added_texts_;
  AddedTokens raw_, normalized_;
  int64_t size_ = 0;
  int32_t end_ = 0;
  std::string end_text_;
  bool strips_first_ = false;  // decode() removes the first blank
  bool splits_signs_ = false;
  bool cuts_at_blanks_ = false, cuts_at_lines_ = false;
  mutable ScratchPool<Scratch> scratches_;
};

// True before a blank between two letters, or after a line end that follows a visible ASCII character and precedes a
// letter, if this tokenizer begins a word there; not near an added token.
bool JsonTokenizer::may_cut(std::string_view text, size_t at) const {
  const bool blank =
      cuts_at_blanks_ && text[at] == ' ' && is_letter(text[at - 1]) && at + 1 < text.size() && is_letter(text[at + 1]);
  const bool line = cuts_at_lines_ && text[at - 1] == '\n' && at > 1 && is_letter(text[at]) &&
                    static_cast<unsigned char>(text[at - 2]) > ' ' && static_cast<unsigned char>(text[at - 2]) < 0x7F;
  if (!blank && !line) return false;
  const size_t near_bytes = std::max(raw_.longest(), normalized_.longest()) + 2;  // no added token reaches further
  size_t begin = at - std::min(at, near_bytes);
  while (begin < at && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  const std::string_view near = text.substr(begin, 2 * near_bytes);
  bool alone = true;
  for (const AddedTokens* added : {&raw_, &normalized_}) {
    if (added->empty()) continue;
    added->split(
        near.substr(0, whole_characters(near)), [](std::string_view, bool) {}, [&](int32_t) { alone = false; });
  }
  return alone;
}

// Finds out by trying whether the parts of some texts have the same words as the whole.
void JsonTokenizer::find_cuts() {
  const auto scratch = scratches_.lend();
  const auto words = [&](std::string_view text, bool continues) {
    const std::string normalized = normalize(text, continues, *scratch);  // the words are views of it
    split(normalized, !continues, *scratch);
    std::vector<std::string> list(scratch->words.list.begin(), scratch->words.list.end());
    return list;
  };
  const auto falls_apart = [&](std::string_view left, std::string_view right) {
    auto parts = words(left, false);
    const auto rest = words(right, true);
    const auto whole = words(fmt::format("{}{}", left, right), false);
    // One word, which no token joins at its signs. A blank that is no sign may be within a token.
    if (splits_signs_) {
      const std::string& word = whole.front();
      return word == parts.front().append(rest.front()) && word.find(' ') == std::string::npos;
    }
    parts.insert(parts.end(), rest.begin(), rest.end());
    return parts == whole;
  };
  using Pairs = std::initializer_list<std::pair<const char*, const char*>>;
  const auto all = [&](Pairs pairs) {
    return std::all_of(pairs.begin(), pairs.end(), [&](const auto& p) { return falls_apart(p.first, p.second); });
  };
  cuts_at_blanks_ = all(Pairs{
      {"abc", " def"}, {"a B. Abc", " Def ghi"}, {"I'm 12 x", " y's\n\n z"}, {"ab", " c d e 's"}, {"xABC", " DEF, g"}});
  cuts_at_lines_ = !pre_tokenizers_.prefixes && !splits_signs_ &&
                   all(Pairs{{"abc\n", "def"}, {"A b.\n", "Def"}, {"12\n", "y"}, {"x!?\n", "It's"}, {"(a)\n", "Zz z"}});
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& origin,
                                                const std::string& end_of_document) {
  const auto json = parse_json(text);
  if (!json || !json->is_object()) throw InputError(fmt::format("{}: not JSON, or cut short", origin));
  if (!json->contains("model")) throw InputError(fmt::format("{}: no tokenizer.json: it has no 'model'", origin));
  auto tokenizer = std::make_unique<JsonTokenizer>(*json, origin);

  std::vector<std::string> names = {"<|endoftext|>", "</s>", "[SEP]"};
  if (!end_of_document.empty()) names = {end_of_document};
  for (const std::string& name : names) {
    if (const auto id = tokenizer->find(name)) {
      tokenizer->end_documents_with(*id, name);
      return tokenizer;
    }
  }
  throw InputError(
      end_of_document.empty()
          ? fmt::format("{}: none of its tokens is known to end a text; name one with gyre prepare --end-of-document",
                        origin)
          : fmt::format("{}: has no token '{}' to end documents with; name another with gyre prepare --end-of-document",
                        origin, printable(end_of_document)));
}

}  // namespace gyre
