// The regular expressions of a tokenizer.json, matched by PCRE2 in Unicode mode, and compiled to machine code where
// possible.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gyre {

// Working memory of one thread for matching any pattern.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

class Regex {
 public:
  // Throws InputError if `pattern` is not valid, or has something not known to mean the same as in the Oniguruma
  // library, which Hugging Face's tokenizers use. `where` is what errors call it.
  Regex(const std::string& pattern, const std::string& where);
  // A pattern that matches `text` literally.
  static Regex literal(std::string_view text, const std::string& where);

  // Whether it can match the empty text; true if that is hard to tell.
  bool may_be_empty() const;
  // The beginning and end of the next match at or after `from` that is not empty; the text's end twice if there is
  // none. `text` must be UTF-8. Throws InputError if matching takes too long.
  std::pair<size_t, size_t> find(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct Code;
  std::string where_;
  std::shared_ptr<const Code> code_;
};

}  // namespace gyre
