// Byte-pair encoding, of bytes or of characters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/byte_alphabet.h"
#include "gyre/tokenizers/json/model.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

struct BpeSettings {
  Vocabulary vocabulary;
  std::optional<int32_t> unknown;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false, byte_level = false;
};

std::string byte_name(size_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

class Bpe final : public WordModel {
 public:
  Bpe(BpeSettings settings, Merges merges) : settings_(std::move(settings)), merges_(std::move(merges)) {
    texts_.resize(1 +
                  static_cast<size_t>(std::max_element(settings_.vocabulary.begin(), settings_.vocabulary.end(),
                                                       [](const auto& a, const auto& b) { return a.second < b.second; })
                                          ->second));
    bytes_.fill(-1);
    std::unordered_map<char32_t, size_t> alphabet;
    if (settings_.byte_level) {
      const auto letters = byte_alphabet();
      for (size_t byte = 0; byte < letters.size(); ++byte) alphabet[letters[byte]] = byte;
    }
    for (const auto& [token, id] : settings_.vocabulary) {
      std::string& text = texts_[static_cast<size_t>(id)];
      if (!settings_.byte_level) {
        text = token;
        continue;
      }
      for (size_t at = 0; at < token.size();) {
        const Character c = character_at(token, at);
        const auto byte = alphabet.find(c.code);
        if (byte == alphabet.end()) {
          text = token;  // no word matches it, but it may be an added token
          break;
        }
        text.push_back(static_cast<char>(byte->second));
        at += c.bytes;
        if (at == token.size()) words_.emplace(text, id);
        if (at == token.size() && text.size() == 1) bytes_[byte->second] = id;
      }
    }
    if (!settings_.byte_level && settings_.byte_fallback) {
      for (size_t byte = 0; byte < bytes_.size(); ++byte) {
        const auto found = settings_.vocabulary.find(byte_name(byte));
        if (found == settings_.vocabulary.end()) continue;
        bytes_[byte] = found->second;
        is_byte_[found->second] = static_cast<char>(byte);
      }
    }
    for (const std::string& text : texts_) {
      const std::string_view sign = settings_.byte_level ? std::string_view(" ") : kBlankSign;
      std::string_view rest = text;
      while (rest.starts_with(sign)) rest.remove_prefix(sign.size());
      crosses_blanks_ = crosses_blanks_ || rest.find(sign) != std::string_view::npos;
    }
  }

  void encode(std::string_view word, std::vector<int32_t>& tokens, MergeScratch& scratch) const override {
    if (settings_.ignore_merges) {
      const Vocabulary& whole = settings_.byte_level ? words_ : settings_.vocabulary;
      if (const auto found = whole.find(word); found != whole.end()) {
        tokens.push_back(found->second);
        return;
      }
    }
    auto& ids = scratch.ids;
    ids.clear();
    bool unknown = false;  // whether the last symbol is the unknown one
    const auto add_unknown = [&] {
      if (settings_.unknown && !(unknown && settings_.fuse_unknown)) ids.push_back(*settings_.unknown);
      unknown = settings_.unknown.has_value();
    };
    for (size_t at = 0; at < word.size();) {
      if (settings_.byte_level) {
        const int32_t id = bytes_[static_cast<unsigned char>(word[at++])];
        if (id < 0) {
          add_unknown();
        } else {
          ids.push_back(id);
          unknown = false;
        }
        continue;
      }
      const std::string_view c = word.substr(at, character_at(word, at).bytes);
      at += c.size();
      if (const auto found = settings_.vocabulary.find(c); found != settings_.vocabulary.end()) {
        ids.push_back(found->second);
        unknown = false;
      } else if (settings_.byte_fallback &&
                 std::all_of(c.begin(), c.end(), [&](char b) { return bytes_[static_cast<unsigned char>(b)] >= 0; })) {
        for (const char b : c) ids.push_back(bytes_[static_cast<unsigned char>(b)]);
        unknown = false;
      } else {
        add_unknown();
      }
    }
    merges_.apply(ids, scratch);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }

  void decode(int32_t token, bool, std::string& text) const override {
    if (token < 0 || static_cast<size_t>(token) >= texts_.size()) return;
    if (const auto byte = is_byte_.find(token); byte != is_byte_.end()) {
      text.push_back(byte->second);
      return;
    }
    const std::string& piece = texts_[static_cast<size_t>(token)];
    if (settings_.byte_level) {
      text += piece;
      return;
    }
    for (size_t at = 0; at < piece.size();) {
      const bool blank = std::string_view(piece).substr(at).starts_with(kBlankSign);
      text.push_back(blank ? ' ' : piece[at]);
      at += blank ? kBlankSign.size() : 1;
    }
  }
  const Vocabulary& vocabulary() const override { return settings_.vocabulary; }
  bool crosses_blanks() const override { return crosses_blanks_; }

 private:
  BpeSettings settings_;
  Merges merges_;
  std::vector<std::string> texts_;  // text of each token: bytes, or characters as in the vocabulary
  Vocabulary words_;                // byte-level: the vocabulary, with tokens as bytes
  std::array<int32_t, 256> bytes_{};
  std::unordered_map<int32_t, char> is_byte_;
  bool crosses_blanks_ = false;
};

// "left right", or ["left", "right"].
std::pair<std::string, std::string> halves_of(const Json& json, const JsonFields<Json>& fields) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return {json[0].get<std::string>(), json[1].get<std::string>()};
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const size_t blank = text.find(' ');
    if (blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos) {
      return {text.substr(0, blank), text.substr(blank + 1)};
    }
  }
  fields.fail(fmt::format("a merge is not a pair of tokens: {}", printable(json_text(json).substr(0, 80))));
}

}  // namespace

std::unique_ptr<WordModel> parse_bpe(const Json& json, bool byte_level, const std::string& where) {
  JsonFields fields(json, where);
  BpeSettings settings;
  settings.byte_level = byte_level;
  settings.vocabulary = parse_vocabulary(fields.at("vocab"), where);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* value = fields.find(key);
    if (value != nullptr && value->is_string() && !value->get_ref<const std::string&>().empty()) {
      fields.fail(fmt::format("'{}' is unknown to this gyre", key));
    }
  }
  if (const Json* dropout = fields.find("dropout"); dropout != nullptr && dropout->is_number() && *dropout != 0) {
    fields.fail("'dropout' makes tokens random; remove it");
  }
  if (const Json* unknown = fields.find("unk_token"); unknown != nullptr && unknown->is_string()) {
    const auto found = settings.vocabulary.find(unknown->get_ref<const std::string&>());
    if (found == settings.vocabulary.end()) fields.fail("'unk_token' is not in the vocabulary");
    settings.unknown = found->second;
  }
  settings.fuse_unknown = flag_of(json, "fuse_unk", false);
  settings.byte_fallback = flag_of(json, "byte_fallback", false);
  settings.ignore_merges = flag_of(json, "ignore_merges", false);

  const Json& list = fields.at("merges");
  if (!list.is_array()) fields.fail("'merges' must be a list");
  Merges merges(list.size());
  uint32_t rank = 0;
  for (const Json& item : list) {
    const auto [left, right] = halves_of(item, fields);
    const auto id = [&](const std::string& token) {
      const auto found = settings.vocabulary.find(token);
      if (found == settings.vocabulary.end()) {
        fields.fail(fmt::format("merge {} needs '{}', which is not in the vocabulary", rank, printable(token)));
      }
      return found->second;
    };
    const int32_t l = id(left), r = id(right);
    merges.add(l, r, rank, id(left + right));
    ++rank;
  }
  return std::make_unique<Bpe>(std::move(settings), std::move(merges));
}

}  // namespace gyre
