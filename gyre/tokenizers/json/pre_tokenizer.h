// Pre-tokenizers, which split a text into the words that the model encodes one by one: the "pre_tokenizer" of a
// tokenizer.json.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/tokenizers/json/regex.h"

namespace gyre {

// The words of a text, passed from step to step.
struct Words {
  std::vector<std::string_view> list, next;
  std::deque<std::string> made;  // storage for words that are not views of the text
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Splits `word` and appends the parts to words.next. `first`: it begins where the document begins.
  virtual void split(std::string_view word, bool first, Words& words, RegexScratch& scratch) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  bool byte_level = false;       // the model's characters stand for bytes
  bool prefixes = false;         // a step may put a blank before a text
  bool replaces_blanks = false;  // a step replaces them by a sign
  // Where the step is that puts a sign before a word only where the document begins, if there is one.
  std::optional<size_t> marks_first;

  // Throws InputError naming what this gyre does not support.
  static PreTokenizers parse(const nlohmann::json& json, const std::string& origin);
};

}  // namespace gyre
