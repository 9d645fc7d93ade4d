#include "gyre/tokenizers/json/vocabularies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/pattern.h"
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

Json settings_of(std::string_view config, const std::string& origin) {
  if (config.empty()) return Json::object();
  const auto json = parse_json(config);
  if (!json || !json->is_object()) {
    throw InputError(fmt::format("{}: the tokenizer_config.json beside it is no JSON object", origin));
  }
  return *json;
}

}  // namespace

std::string json_of_gpt2(std::string_view vocabulary, std::string_view merges, std::string_view config,
                         const std::string& origin) {
  const auto tokens = parse_json(vocabulary);
  if (!tokens || !tokens->is_object()) throw InputError(fmt::format("{}: is no JSON object of tokens", origin));
  check_text(merges, origin + ": the merges beside it");
  Json list = Json::array();
  for_each_line(merges, [&](std::string_view line) {
    if (!line.empty() && !(list.empty() && line.starts_with("#version"))) list.push_back(std::string(line));
  });
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", flag_of(settings_of(config, origin), "add_prefix_space", false)},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return json_parts::document(special_tokens(*tokens, {"<|endoftext|>"}), nullptr, byte_level, byte_level,
                              json_parts::bpe(*tokens, list))
             .dump() +
         "\n";
}

std::string json_of_bert(std::string_view vocabulary, std::string_view config, const std::string& origin) {
  check_text(vocabulary, origin);
  Json tokens = Json::object();
  int64_t count = 0;
  for_each_line(vocabulary, [&](std::string_view line) { tokens[std::string(line)] = count++; });
  const Json settings = settings_of(config, origin);
  const bool lower = flag_of(settings, "do_lower_case", true);
  const Json normalizer = {{"type", "BertNormalizer"},
                           {"clean_text", true},
                           {"handle_chinese_chars", flag_of(settings, "tokenize_chinese_chars", true)},
                           {"strip_accents", flag_of(settings, "strip_accents", lower)},
                           {"lowercase", lower}};
  const Json model = {{"type", "WordPiece"},
                      {"unk_token", "[UNK]"},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 100},
                      {"vocab", tokens}};
  return json_parts::document(special_tokens(tokens, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}), normalizer,
                              {{"type", "BertPreTokenizer"}},
                              {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}, model)
             .dump() +
         "\n";
}

}  // namespace gyre
