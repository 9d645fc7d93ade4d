#include "gyre/tokenizers/json/token_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/json_parts.h"
#include "gyre/tokenizers/token_text.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

constexpr const char* kAdditional = "additional_special_tokens";

// The object in `text`, which is empty for a file that is missing.
Json object_of(std::string_view text, const std::string& where) {
  if (text.empty()) return Json::object();
  const auto json = parse_json(text);
  if (!json || !json->is_object()) throw InputError(fmt::format("{}: is no JSON object", where));
  return *json;
}

// The texts of a list of tokens.
std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const Json& token : list) {
    if (const std::string text = token_text(token); !text.empty()) texts.push_back(text);
  }
  return texts;
}

int64_t number_of(const std::string& text, const std::string& where) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, number); read.ptr == end && number >= 0) return number;
  throw InputError(fmt::format("{}: '{}' is no number of a token", where, printable(text)));
}

// Those of "added_tokens_decoder", whose keys are numbers.
std::vector<Json> decoder_tokens(const Json& decoder, const std::string& where) {
  if (!decoder.is_object()) throw InputError(fmt::format("{}: must be an object", where));
  std::vector<Json> tokens;
  for (const auto& [number, flags] : decoder.items()) {
    JsonFields fields(flags, where);
    const bool special = flag_of(flags, "special", false);
    Json token = json_parts::added_token(number_of(number, where), fields.need<std::string>("content"), special);
    for (const char* key : {"single_word", "lstrip", "rstrip"}) token[key] = flag_of(flags, key, false);
    token["normalized"] = flag_of(flags, "normalized", !special);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Those of added_tokens.json, which has their numbers only.
std::vector<Json> numbered_tokens(const Json& numbers, const std::set<std::string>& special, const std::string& where) {
  std::vector<Json> tokens;
  JsonFields fields(numbers, where);
  for (const auto& [text, unused] : numbers.items()) {
    Json token = json_parts::added_token(fields.need<int64_t>(text.c_str()), text, special.contains(text));
    token["normalized"] = !special.contains(text);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Whether texts are encoded in another way with one entry than with the other, of the same token.
bool differ(const Json& a, const Json& b) {
  return std::ranges::any_of(std::to_array({"single_word", "lstrip", "rstrip"}),
                             [&](const char* key) { return flag_of(a, key, false) != flag_of(b, key, false); }) ||
         flag_of(a, "normalized", !flag_of(a, "special", false)) !=
             flag_of(b, "normalized", !flag_of(b, "special", false));
}

// Puts the tokens into a tokenizer.json's "added_tokens". Returns whether that changed.
bool add_tokens(Json& list, const NamedTokens& named, const std::string& place) {
  if (list.is_null()) list = Json::array();
  if (!list.is_array()) return false;  // which the reader of the tokenizer.json says
  std::map<std::string, size_t> there;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_object()) there.emplace(token_text(list[i]), i);
  }
  bool is_changed = false;
  for (const Json& token : named.added) {
    const auto same = there.find(token_text(token));
    if (same == there.end()) {
      list.push_back(token);
      is_changed = true;
      continue;
    }
    Json& own = list[same->second];
    if (own.value("id", Json()) != token["id"]) {
      throw InputError(
          fmt::format("{}: the token '{}' has the number {} in tokenizer.json, and {} in the files beside it", place,
                      printable(same->first), json_text(own.value("id", Json())), json_text(token["id"])));
    }
    if (!named.overrides || !differ(own, token)) continue;
    own = token;
    is_changed = true;
  }
  return is_changed;
}

// The entry of an object, or null.
const Json* entry(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() ? &*found : nullptr;
}

void check_numbered(const std::vector<std::string>& names, const Json& json, const std::string& place) {
  const Json* const vocabulary = entry(json.at("model"), "vocab");
  const auto texts = texts_of(json.value("added_tokens", Json()));
  const std::set<std::string> added(texts.begin(), texts.end());
  for (const std::string& name : names) {
    if (added.contains(name)) continue;
    if (vocabulary != nullptr && vocabulary->contains(name)) continue;
    throw InputError(fmt::format("{}: {} has '{}', to which no file gives a number; save the tokenizer again", place,
                                 kAdditional, printable(name)));
  }
}

// The classes of BERT and GPT-2, and others with the same settings, put those of the configuration, or their defaults,
// in place of the tokenizer.json's. Only PreTrainedTokenizerFast is sure to leave them alone.
void check_settings(const Json& json, const Json& config, const std::string& place) {
  const std::string name = token_text(config.value("tokenizer_class", Json()));
  if (name == "PreTrainedTokenizerFast") return;
  const auto agree = [&](const char* key, bool configured, const std::string& their_key, bool own) {
    if (configured == own) return;
    throw InputError(
        fmt::format("{}: {} is {} by tokenizer_config.json, and {} is {} in tokenizer.json; make them agree", place,
                    key, configured, their_key, own));
  };
  const auto of_type = [&](const char* part, const char* type) {
    const Json* const step = entry(json, part);
    return step != nullptr && step->is_object() && step->value("type", Json()) == type ? step : nullptr;
  };
  const auto names_any = [&](std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return config.contains(key); });
  };
  const Json* const bert = of_type("normalizer", "BertNormalizer");
  if (bert != nullptr &&
      (name.starts_with("BertTokenizer") || names_any({"do_lower_case", "strip_accents", "tokenize_chinese_chars"}))) {
    const bool lower = flag_of(config, "do_lower_case", true), own_lower = flag_of(*bert, "lowercase", true);
    agree("do_lower_case", lower, "the normalizer's lowercase", own_lower);
    agree("strip_accents", flag_of(config, "strip_accents", lower), "the normalizer's strip_accents",
          flag_of(*bert, "strip_accents", own_lower));
    agree("tokenize_chinese_chars", flag_of(config, "tokenize_chinese_chars", true),
          "the normalizer's handle_chinese_chars", flag_of(*bert, "handle_chinese_chars", true));
  }
  const Json* const byte_level = of_type("pre_tokenizer", "ByteLevel");
  if (byte_level != nullptr && (name.starts_with("GPT2Tokenizer") || names_any({"add_prefix_space"}))) {
    agree("add_prefix_space", flag_of(config, "add_prefix_space", false), "the pre_tokenizer's add_prefix_space",
          flag_of(*byte_level, "add_prefix_space", true));
  }
}

}  // namespace

NamedTokens named_tokens(const TokenFiles& files) {
  const Json config = object_of(files.config, files.place + "/tokenizer_config.json");
  const Json* const decoder = entry(config, "added_tokens_decoder");
  // Special tokens by their role, of which earlier versions kept a list of their own.
  Json roles = config;
  const Json map = object_of(files.special_tokens_map, files.place + "/special_tokens_map.json");
  if (decoder == nullptr) roles.update(map);

  NamedTokens named;
  named.end = token_text(roles.value("eos_token", Json()));
  if (named.end.empty()) named.end = token_text(map.value("eos_token", Json()));
  named.special = texts_of(roles.value(kAdditional, Json()));
  if (decoder != nullptr) {
    named.overrides = true;
    named.added = decoder_tokens(*decoder, files.place + "/tokenizer_config.json: added_tokens_decoder");
  } else {
    std::set<std::string> special(named.special.begin(), named.special.end());
    for (const auto& [role, token] : roles.items()) {
      if (role.ends_with("_token")) special.insert(token_text(token));
    }
    named.added = numbered_tokens(object_of(files.added_tokens, files.place + "/added_tokens.json"), special,
                                  files.place + "/added_tokens.json");
  }
  std::ranges::stable_sort(named.added, {}, [](const Json& token) { return token.at("id").get<int64_t>(); });
  return named;
}

std::string with_added_tokens(std::string tokenizer_json, const TokenFiles& files, const NamedTokens& named) {
  if (files.config.empty() && named.added.empty() && named.special.empty()) return tokenizer_json;
  auto json = parse_json(tokenizer_json);
  if (!json || !json->is_object() || !json->contains("model")) return tokenizer_json;  // which its reader refuses
  check_settings(*json, object_of(files.config, files.place + "/tokenizer_config.json"), files.place);
  const bool is_changed = add_tokens((*json)["added_tokens"], named, files.place);
  check_numbered(named.special, *json, files.place);
  return is_changed ? json_text(*json) + "\n" : tokenizer_json;
}

std::string with_end(const std::string& config, const std::string& end) {
  Json json = parse_json(config).value_or(Json::object());
  if (end.empty() || token_text(json.value("eos_token", Json())) == end) return config;
  json["eos_token"] = end;
  return json_text(json) + "\n";
}

Json config_beside(std::string_view config, const std::string& origin) {
  return object_of(config, "the tokenizer_config.json beside " + origin);
}

std::string end_of(const std::string& config, const std::string& origin) {
  return token_text(config_beside(config, origin).value("eos_token", Json()));
}

}  // namespace gyre
