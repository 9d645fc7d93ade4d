// WordPiece: takes the longest piece at each place of a word; the whole word is unknown if no piece matches somewhere.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/model.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

class WordPiece final : public WordModel {
 public:
  WordPiece(Vocabulary vocabulary, int32_t unknown, std::string prefix, int64_t max_characters)
      : vocabulary_(std::move(vocabulary)),
        unknown_(unknown),
        prefix_(std::move(prefix)),
        max_characters_(max_characters) {
    for (const auto& [piece, id] : vocabulary_) {
      if (texts_.size() <= static_cast<size_t>(id)) texts_.resize(static_cast<size_t>(id) + 1);
      texts_[static_cast<size_t>(id)] = piece;
      const bool inner = !prefix_.empty() && piece.starts_with(prefix_);
      if (inner) inner_.emplace(piece.substr(prefix_.size()), id);
      max_piece_bytes_ = std::max(max_piece_bytes_, piece.size());
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& tokens, MergeScratch&) const override {
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    const auto characters = word.size() - static_cast<size_t>(std::count_if(word.begin(), word.end(), continues));
    const size_t before = tokens.size();
    if (characters > static_cast<size_t>(max_characters_)) {
      tokens.push_back(unknown_);
      return;
    }
    for (size_t begin = 0; begin < word.size();) {
      const Vocabulary& pieces = begin == 0 || prefix_.empty() ? vocabulary_ : inner_;
      size_t end = std::min(word.size(), begin + max_piece_bytes_);
      auto found = pieces.end();
      for (; end > begin; --end) {
        if (end < word.size() && continues(word[end])) continue;
        found = pieces.find(word.substr(begin, end - begin));
        if (found != pieces.end()) break;
      }
      if (found == pieces.end()) {
        tokens.resize(before);
        tokens.push_back(unknown_);
        return;
      }
      tokens.push_back(found->second);
      begin = end;
    }
  }

  // Separates words by one blank: the original text between them is not known.
  void decode(int32_t token, bool first, std::string& text) const override {
    if (token < 0 || static_cast<size_t>(token) >= texts_.size()) return;
    std::string_view piece = texts_[static_cast<size_t>(token)];
    const bool inner = !prefix_.empty() && piece.starts_with(prefix_);
    if (inner && !first) {
      piece.remove_prefix(prefix_.size());
    } else if (!first) {
      text += ' ';
    }
    text += piece;
  }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  bool crosses_blanks() const override { return true; }  // words depend on its pre-tokenizer

 private:
  Vocabulary vocabulary_;
  int32_t unknown_;
  std::string prefix_;
  int64_t max_characters_;
  Vocabulary inner_;  // pieces within words, without the prefix
  std::vector<std::string> texts_;
  size_t max_piece_bytes_ = 1;
};

}  // namespace

Vocabulary parse_vocabulary(const Json& json, const std::string& where) {
  if (!json.is_object() || json.empty())
    throw InputError(fmt::format("{}: 'vocab' must be an object with tokens", where));
  Vocabulary vocabulary;
  vocabulary.reserve(json.size());
  std::unordered_map<int32_t, std::string_view> texts;
  texts.reserve(json.size());
  for (const auto& [token, value] : json.items()) {
    const auto id = whole_number(value);
    if (!id || *id < 0 || *id >= kMaxTokenIds) {
      throw InputError(
          fmt::format("{}: the token '{}' has no number from 0 to {}", where, printable(token), kMaxTokenIds - 1));
    }
    const auto entry = vocabulary.emplace(token, static_cast<int32_t>(*id)).first;
    if (const auto [same, is_new] = texts.emplace(entry->second, entry->first); !is_new) {
      throw InputError(fmt::format("{}: the tokens '{}' and '{}' have the same number, {}; give each its own", where,
                                   printable(same->second), printable(token), *id));
    }
  }
  return vocabulary;
}

std::unique_ptr<WordModel> parse_word_piece(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  Vocabulary vocabulary = parse_vocabulary(fields.at("vocab"), where);
  std::string unknown = "[UNK]", prefix = "##";
  fields.read("unk_token", unknown);
  fields.read("continuing_subword_prefix", prefix);
  int64_t max_characters = 100;
  fields.read("max_input_chars_per_word", max_characters);
  const auto found = vocabulary.find(unknown);
  if (found == vocabulary.end()) {
    fields.fail(fmt::format("'unk_token' is '{}', which is not in the vocabulary", printable(unknown)));
  }
  const int32_t id = found->second;
  return std::make_unique<WordPiece>(std::move(vocabulary), id, prefix, max_characters);
}

std::unique_ptr<WordModel> parse_word_model(const Json& json, bool byte_level, const std::string& origin) {
  const std::string where = origin + ": model";
  JsonFields fields(json, where);
  std::string type = json.is_object() && json.contains("merges") ? "BPE" : "";  // old files have no type
  fields.read("type", type);
  if (type == "BPE") return parse_bpe(json, byte_level, where);
  if (type == "WordPiece" && !byte_level) return parse_word_piece(json, where);
  fields.fail(type == "Unigram"
                  ? std::string("the type 'Unigram' is unknown to this gyre; give its sentencepiece model")
                  : fmt::format("the type '{}'{} is unknown to this gyre; BPE and WordPiece are known", printable(type),
                                byte_level ? " of bytes" : ""));
}

}  // namespace gyre
