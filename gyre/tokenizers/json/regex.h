// Regular expressions as tokenizer.json has them, by PCRE2 in its Unicode mode, compiled to machine code where it can.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gyre {

// What one thread needs to look for matches, of any pattern.
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
  // InputError: no pattern, or one with something that has another meaning here than in the Oniguruma library that
  // Hugging Face's tokenizers look with. `where` is what errors call it.
  Regex(const std::string& pattern, const std::string& where);
  // Of a text that is to be found as it is.
  static Regex literal(std::string_view text, const std::string& where);

  // Whether it can match nothing at all; true where that is hard to tell.
  bool may_be_empty() const;
  // The next match that is not empty, at `from` or behind it: its beginning and end; the text's end twice if there is
  // none. The text is UTF-8. InputError where looking takes too long.
  std::pair<size_t, size_t> find(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct Code;
  std::string where_;
  std::shared_ptr<const Code> code_;
};

}  // namespace gyre
