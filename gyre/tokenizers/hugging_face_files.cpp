#include "gyre/tokenizers/hugging_face_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/byte_alphabet.h"
#include "gyre/tokenizers/json/vocabularies.h"
#include "gyre/tokenizers/json_parts.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"
#include "gyre/tokenizers/token_text.h"

namespace gyre {
namespace {

using Json = nlohmann::json;
using json_parts::added_token;
using json_parts::bpe;
using json_parts::document;

constexpr const char* kEndOfText = "<|endoftext|>";

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text.push_back(j <= count ? kDigits[bits >> (18 - 6 * j) & 63] : '=');
  }
  return text;
}

Json sequence_of(const char* name, const std::vector<Json>& steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return steps.front();
  return {{"type", "Sequence"}, {name, steps}};
}

// The byte tokenizer, as byte-level BPE without merges. NUL ends documents; its name does not occur in texts by chance.
Json byte_tokenizer_json() {
  Json vocabulary = Json::object();
  const auto alphabet = byte_alphabet();
  for (size_t byte = 0; byte < alphabet.size(); ++byte) {
    std::string name;
    append_character(name, alphabet[byte]);
    vocabulary[byte == 0 ? kEndOfText : name] = byte;
  }
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return document(Json::array({added_token(0, kEndOfText, true)}), nullptr, byte_level, byte_level,
                  bpe(vocabulary, Json::array()));
}

// sentencepiece joins any two neighbours that make a piece, best piece first. A merge in a tokenizer.json names two
// halves, so every way to split a piece into two pieces is a merge.
Json merges_of(const SentencePieceModel& model) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type == SentencePiece::Normal || piece.type == SentencePiece::UserDefined) ids.emplace(piece.text, id);
  }
  std::vector<std::tuple<float, size_t, size_t, size_t>> merges;  // negated score, piece, its halves
  for (const auto& [text, id] : ids) {
    if (model.pieces[id].type != SentencePiece::Normal) continue;
    for (size_t at = character_at(text, 0).bytes; at < text.size(); at += character_at(text, at).bytes) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.emplace_back(-model.pieces[id].score, id, left->second, right->second);
    }
  }
  std::sort(merges.begin(), merges.end());
  Json list = Json::array();
  for (const auto& [score, id, left, right] : merges) {
    list.push_back(model.pieces[left].text + " " + model.pieces[right].text);
  }
  return list;
}

void refuse_without_counterpart(const SentencePieceModel& model, const std::string& origin) {
  if (model.type != SentencePieceModel::Bpe && model.type != SentencePieceModel::Unigram) {
    throw InputError(
        fmt::format("{}: a sentencepiece model of words or characters has no counterpart in a "
                    "tokenizer.json; BPE and unigram have",
                    origin));
  }
  if (!model.escape_whitespaces || model.blanks_at_ends) {
    throw InputError(fmt::format("{}: a sentencepiece model with {} has no counterpart in a tokenizer.json", origin,
                                 model.blanks_at_ends ? "treat_whitespace_as_suffix" : "escape_whitespaces off"));
  }
}

Json added_tokens(const SentencePieceModel& model) {
  Json added = Json::array();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    const bool symbol = piece.type == SentencePiece::UserDefined;
    // A symbol with a blank is never found, because blanks have been replaced by signs by then.
    const bool is_found = symbol && piece.text.find(' ') == std::string::npos;
    if (is_found || piece.type == SentencePiece::Control || piece.type == SentencePiece::Unknown) {
      added.push_back(added_token(static_cast<int64_t>(id), piece.text, !symbol));
      // Symbols are looked for in the normalized text. But the normalizer would strip a blank sign that stands alone.
      added.back()["normalized"] =
          symbol && !(model.remove_extra_whitespaces && piece.text.find(kBlankSign) != std::string::npos);
    }
  }
  return added;
}

// Who puts the blank before a text. The normalizer would put one before user-defined symbols too, since these are
// normalized as well.
bool metaspace_adds_blank(const SentencePieceModel& model) {
  const auto is_symbol = [](const SentencePiece& piece) { return piece.type == SentencePiece::UserDefined; };
  return model.add_dummy_prefix && std::ranges::any_of(model.pieces, is_symbol);
}

Json normalizer(const SentencePieceModel& model) {
  const std::string sign(kBlankSign);
  std::vector<Json> normalizers;
  if (!model.charsmap.empty()) {
    normalizers.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(model.charsmap)}});
  }
  const auto replace = [&](const Json& pattern, const std::string& content) {
    normalizers.push_back({{"type", "Replace"}, {"pattern", pattern}, {"content", content}});
  };
  if (model.remove_extra_whitespaces) {
    replace({{"Regex", fmt::format("\\A +|[ {}]+\\z", sign)}}, "");
    replace({{"Regex", " {2,}"}}, " ");
  }
  if (model.add_dummy_prefix && !metaspace_adds_blank(model)) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", sign}});
  }
  replace({{"String", " "}}, sign);
  return sequence_of("normalizers", normalizers);
}

// Metaspace puts a blank before the first part only, unless that begins with the sign; so the first of two Metaspaces
// uses another sign.
Json pre_tokenizer(const SentencePieceModel& model) {
  if (!metaspace_adds_blank(model)) return nullptr;
  const auto metaspace = [](const std::string& replacement, const char* scheme) -> Json {
    return {{"type", "Metaspace"}, {"replacement", replacement}, {"prepend_scheme", scheme}, {"split", false}};
  };
  return sequence_of("pretokenizers", {metaspace(" ", "first"), metaspace(std::string(kBlankSign), "never")});
}

Json decoder(const SentencePieceModel& model) {
  std::vector<Json> decoders = {
      {{"type", "Replace"}, {"pattern", {{"String", std::string(kBlankSign)}}}, {"content", " "}}};
  if (model.byte_fallback) decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (model.add_dummy_prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return sequence_of("decoders", decoders);
}

Json pieces(const SentencePieceModel& model) {
  Json unknown;
  size_t unknown_id = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == SentencePiece::Unknown) unknown = model.pieces[id].text, unknown_id = id;
  }
  if (model.type == SentencePieceModel::Bpe) {
    Json vocabulary = Json::object();
    for (size_t id = 0; id < model.pieces.size(); ++id) vocabulary[model.pieces[id].text] = id;
    Json json = bpe(vocabulary, merges_of(model));
    json["unk_token"] = unknown;
    json["fuse_unk"] = true;
    json["byte_fallback"] = model.byte_fallback;
    return json;
  }
  Json vocabulary = Json::array();
  for (const SentencePiece& piece : model.pieces) vocabulary.push_back(Json::array({piece.text, piece.score}));
  return {{"type", "Unigram"},
          {"unk_id", unknown_id},
          {"vocab", std::move(vocabulary)},
          {"byte_fallback", model.byte_fallback}};
}

Json sentencepiece_json(const SentencePieceModel& model, const std::string& origin) {
  refuse_without_counterpart(model, origin);
  return document(added_tokens(model), normalizer(model), pre_tokenizer(model), decoder(model), pieces(model));
}

// Names the special tokens that the vocabulary has and `config` does not name. Returns whether there were any.
bool name_bert_tokens(const Json& vocabulary, Json& config) {
  bool is_changed = false;
  for (const auto& [key, name] : bert_special_tokens()) {
    if (config.contains(key) || !vocabulary.contains(name)) continue;
    config[key] = name;
    is_changed = true;
  }
  return is_changed;
}

std::string serialized(const Json& json) {
  return json_text(json, 2) + "\n";
}

}  // namespace

HuggingFaceFiles hugging_face_files(const TokenizerModel& model, const std::string& origin) {
  HuggingFaceFiles files;
  std::string end = kEndOfText, unknown;
  if (model.kind == "byte") {
    files.tokenizer = serialized(byte_tokenizer_json());
  } else {
    end = make_tokenizer(model, origin)->end_of_document_text();
  }
  std::optional<std::string> bert;  // a tokenizer.json that was made from BERT's vocabulary
  if (model.kind == "json") {
    bert = with_post_processor(model.content);
    files.tokenizer = bert.value_or(model.content);
  }
  if (model.kind == "bpe" || model.kind == "sentencepiece") {
    const Json json = sentencepiece_json(SentencePieceModel::parse(model.content, origin), origin);
    unknown = token_text(json["model"].value("unk_token", Json()));
    files.tokenizer = serialized(json);
  }

  Json config = parse_json(model.config).value_or(Json());
  bool is_changed = !config.is_object() || token_text(config.value("eos_token", Json())) != end;
  if (is_changed) {
    if (!config.is_object()) {
      config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
      if (!unknown.empty()) config["unk_token"] = unknown;
    }
    config["eos_token"] = end;
  }
  if (bert) is_changed |= name_bert_tokens(Json::parse(*bert)["model"]["vocab"], config);
  files.tokenizer_config = is_changed ? serialized(config) : model.config;
  Json special = Json::object();
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    if (config.contains(key) && !token_text(config[key]).empty()) special[key] = config[key];
  }
  files.special_tokens_map = serialized(special);
  return files;
}

}  // namespace gyre
