// How a text is split into the words that the model encodes one by one: the "pre_tokenizer" of a tokenizer.json.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/tokenizers/json/regex.h"

namespace gyre {

// Words of a text, from step to step.
struct Words {
  std::vector<std::string_view> list, next;
  std::deque<std::string> made;  // texts of words that are no part of the whole text
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Appends to words.next the words of `word`. `first`: the document begins with it.
  virtual void split(std::string_view word, bool first, Words& words, RegexScratch& scratch) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  bool byte_level = false;  // the model's characters stand for bytes
  bool prefixes = false;    // a text may get a blank before it

  // InputError naming what this gyre lacks.
  static PreTokenizers parse(const nlohmann::json& json, const std::string& origin);
};

}  // namespace gyre
