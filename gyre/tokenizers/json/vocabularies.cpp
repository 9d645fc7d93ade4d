#include "gyre/tokenizers/json/vocabularies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/json/token_files.h"
#include "gyre/tokenizers/json_parts.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
  }
}

void check_text(std::string_view text, const std::string& what) {
  if (!is_utf8(text)) throw InputError(fmt::format("{}: is not UTF-8", what));
}

// "added_tokens" entries for those of `names` that the vocabulary has.
Json special_tokens(const Json& vocabulary, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) {
    const auto found = vocabulary.find(name);
    if (found == vocabulary.end()) continue;
    Json token = json_parts::added_token(0, name, true);
    token["id"] = *found;  // not checked here: the reader of the tokenizer.json checks it
    list.push_back(std::move(token));
  }
  return list;
}

Json bert_document(const Json& tokens, const Json& normalizer) {
  const Json model = {{"type", "WordPiece"},
                      {"unk_token", "[UNK]"},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 100},
                      {"vocab", tokens}};
  std::vector<std::string> special;
  for (const auto& [key, name] : bert_special_tokens()) special.emplace_back(name);
  return json_parts::document(special_tokens(tokens, special), normalizer, {{"type", "BertPreTokenizer"}},
                              {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}, model);
}

// [CLS] A [SEP], and B [SEP] of a second text.
Json bert_template(const Json& tokens) {
  const auto part = [](const char* kind, const char* id, int type) -> Json {
    return {{kind, {{"id", id}, {"type_id", type}}}};
  };
  const Json single = {part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)};
  Json pair = single;
  pair.push_back(part("Sequence", "B", 1));
  pair.push_back(part("SpecialToken", "[SEP]", 1));
  Json special = Json::object();
  for (const char* name : {"[CLS]", "[SEP]"}) {
    special[name] = {{"id", name}, {"ids", Json::array({tokens.at(name)})}, {"tokens", Json::array({name})}};
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

// One merge per line. Of a merge that is there twice, transformers' GPT2TokenizerFast takes the first line and its
// GPT2Tokenizer the last, which gives other tokens: it is refused.
Json parse_merges(std::string_view text, const std::string& origin) {
  check_text(text, origin + ": the merges beside it");
  Json list = Json::array();
  std::unordered_map<std::string_view, int64_t> lines;
  int64_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty() || (list.empty() && line.starts_with("#version"))) return;
    if (const auto [same, is_new] = lines.emplace(line, number); !is_new) {
      throw InputError(
          fmt::format("{}: line {} of the merges beside it is line {} again, '{}'; readers disagree on which counts: "
                      "remove one of them (transformers' fast tokenizer takes the first)",
                      origin, number, same->second, printable(line)));
    }
    list.push_back(std::string(line));
  });
  return list;
}

std::string serialized(const Json& json) {
  return json.dump() + "\n";
}

}  // namespace

std::string json_of_gpt2(std::string_view vocabulary, std::string_view merges, std::string_view config,
                         const std::string& origin) {
  const auto tokens = parse_json(vocabulary);
  if (!tokens || !tokens->is_object()) throw InputError(fmt::format("{}: is no JSON object of tokens", origin));
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", flag_of(config_beside(config, origin), "add_prefix_space", false)},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return serialized(json_parts::document(special_tokens(*tokens, {"<|endoftext|>"}), nullptr, byte_level, byte_level,
                                         json_parts::bpe(*tokens, parse_merges(merges, origin))));
}

std::string json_of_bert(std::string_view vocabulary, std::string_view config, const std::string& origin) {
  check_text(vocabulary, origin);
  Json tokens = Json::object();
  int64_t count = 0;
  for_each_line(vocabulary, [&](std::string_view line) { tokens[std::string(line)] = count++; });
  const Json settings = config_beside(config, origin);
  const bool lower = flag_of(settings, "do_lower_case", true);
  const Json normalizer = {{"type", "BertNormalizer"},
                           {"clean_text", true},
                           {"handle_chinese_chars", flag_of(settings, "tokenize_chinese_chars", true)},
                           {"strip_accents", flag_of(settings, "strip_accents", lower)},
                           {"lowercase", lower}};
  return serialized(bert_document(tokens, normalizer));
}

const std::vector<std::pair<const char*, const char*>>& bert_special_tokens() {
  static const std::vector<std::pair<const char*, const char*>> kTokens = {{"pad_token", "[PAD]"},
                                                                           {"unk_token", "[UNK]"},
                                                                           {"cls_token", "[CLS]"},
                                                                           {"sep_token", "[SEP]"},
                                                                           {"mask_token", "[MASK]"}};
  return kTokens;
}

std::optional<std::string> with_post_processor(const std::string& tokenizer_json) {
  auto json = parse_json(tokenizer_json);
  if (!json || !json->is_object() || !json->contains("model") || !json->contains("normalizer")) return std::nullopt;
  const Json& model = (*json)["model"];
  if (!model.is_object() || model.value("type", Json()) != "WordPiece" || !model.contains("vocab")) return std::nullopt;
  const Json& tokens = model["vocab"];
  if (!tokens.is_object()) return std::nullopt;
  Json own = bert_document(tokens, (*json)["normalizer"]);
  own["added_tokens"] = json->value("added_tokens", Json());  // which may have more than the vocabulary
  if (serialized(own) != tokenizer_json) return std::nullopt;
  if (tokens.contains("[CLS]") && tokens.contains("[SEP]")) (*json)["post_processor"] = bert_template(tokens);
  return serialized(*json);
}

}  // namespace gyre
