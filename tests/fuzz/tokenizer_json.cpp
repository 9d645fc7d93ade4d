// tokenizer.json, the patterns in it, and the files beside it: whatever is accepted can encode, cut and decode.
#include "gyre/tokenizers/json/tokenizer_json.h"
#include "fuzz/targets.h"
#include "gyre/tokenizers/json/regex.h"
#include "gyre/tokenizers/json/token_files.h"

namespace gyre::fuzz {

void tokenizer_json(std::string_view input) {
  const auto tokenizer = accepted([&] { return parse_tokenizer_json(input, "input", ""); });
  if (!tokenizer) return;
  const std::string text = "a line of text\nand \xc3\xa9 more  <|endoftext|> 12 it's\n";
  const auto tokens = accepted([&] {
    std::vector<int32_t> list;
    (*tokenizer)->encode(text, list);
    return list;
  });
  require((*tokenizer)->cut(text) <= text.size(), "a cut is within the text");
  if (!tokens) return;
  for (const int32_t token : *tokens) {
    require(token >= 0 && token < (*tokenizer)->vocabulary_size(), "tokens are of the vocabulary");
  }
  (*tokenizer)->decode(*tokens);
}

// The input is any of the files, or all.
void token_files(std::string_view input) {
  const std::string tokenizer =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "</s>": 2}, "merges": []}, "added_tokens": [],
          "normalizer": {"type": "BertNormalizer"}})";
  const std::string text(input);
  for (const TokenFiles& files : {TokenFiles{"place", text, "", ""}, TokenFiles{"place", "", text, ""},
                                  TokenFiles{"place", "", "", text}, TokenFiles{"place", text, text, text}}) {
    accepted([&] {
      const NamedTokens named = named_tokens(files);
      const std::string end = end_of(with_end(files.config, named.end), "input");
      require(end == named.end, "the end is the one that is named");
      return parse_tokenizer_json(with_added_tokens(tokenizer, files, named), "input", end);
    });
  }
}

void tokenizer_pattern(std::string_view input) {
  const auto pattern = accepted([&] { return Regex(std::string(input), "input"); });
  if (!pattern) return;
  RegexScratch scratch;
  const std::string_view text = "aaaaaaaaaaaaaaaa It's \xc3\xa9\xe6\xbc\xa2 1234\n\n x!";
  accepted([&] {
    for (size_t at = 0; at < text.size();) {
      const auto [begin, end] = pattern->find(text, at, scratch);
      require(begin >= at && end <= text.size() && (begin < end || begin == text.size()), "a match lies ahead");
      at = end;
    }
    return 0;
  });
}

}  // namespace gyre::fuzz
