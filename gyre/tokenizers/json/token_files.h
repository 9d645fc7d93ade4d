// What transformers keeps beside a tokenizer: the tokens that were added to it later, and settings that count for more
// than those of tokenizer.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// The contents of the files; each is empty if there is no such file. `place` is what errors call their directory.
struct TokenFiles {
  std::string place;
  std::string config;              // tokenizer_config.json
  std::string added_tokens;        // added_tokens.json, of earlier versions
  std::string special_tokens_map;  // special_tokens_map.json
};

// The tokens that the files name, as transformers reads them. If the configuration has added_tokens_decoder, the other
// files' tokens do not count.
struct NamedTokens {
  // Entries as in the added_tokens of a tokenizer.json, by number; and whether they count for more than an entry for
  // the same token there.
  std::vector<nlohmann::json> added;
  bool overrides = false;
  std::vector<std::string> special;  // additional_special_tokens, which have a number elsewhere
  std::string end;                   // eos_token; empty: none is named
};
// Throws InputError for what is damaged.
NamedTokens named_tokens(const TokenFiles& files);

// The tokenizer.json with the added tokens that it lacks and the files have; the same text if it lacks none. Throws
// InputError if a token has two numbers, if one has no number, or if the configuration has other settings than the
// tokenizer.json: transformers goes by the configuration.
std::string with_added_tokens(std::string tokenizer_json, const TokenFiles& files, const NamedTokens& named);

// The configuration, with `end` as its eos_token.
std::string with_end(const std::string& config, const std::string& end);
// The object in a configuration, which may be empty. Throws InputError if it is none, naming the file beside `origin`.
nlohmann::json config_beside(std::string_view config, const std::string& origin);
// The eos_token of a configuration; empty if it names none. Throws InputError likewise.
std::string end_of(const std::string& config, const std::string& origin);

}  // namespace gyre
