// Inputs made from other inputs, the same ones in every run: a few thousand mutations that a test can afford, where the
// fuzzer tries them for hours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gyre::fuzz {

inline std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

class Mutations {
 public:
  explicit Mutations(std::vector<std::string> corpus, uint64_t seed = 1) : corpus_(std::move(corpus)), random_(seed) {}

  // An input of the corpus with one to four changes.
  std::string next() {
    std::string text = pick(corpus_);
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  void change(std::string& text) {
    const size_t at = below(text.size() + 1);
    const size_t length = below(std::min<size_t>(text.size() - at, 64) + 1);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 4:
        replace_number(text, at);
        break;
      case 5:
        text.insert(at, below(4) > 0 ? pick(tokens_) : std::string(1, " \n\r\0"[below(4)]));
        break;
      case 6: {  // continues with the rest of another input
        const std::string& other = pick(corpus_);
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
    }
  }
  void replace_number(std::string& text, size_t from) {
    constexpr const char* kDigits = "0123456789";
    const size_t begin = text.find_first_of(kDigits, from);
    if (begin == std::string::npos) return;
    const size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    text.replace(begin, end - begin, pick(numbers_));
  }

  // Values that parsers are sensitive to.
  const std::vector<std::string> numbers_ = words(
      "0 1 -1 2 255 65536 65537 2147483647 2147483648 4294967295 4294967296 9007199254740993 "
      "1000000000 1e9 1e308 1e400 0.5 99999999999 -0 9223372036854775807 1e-320 nan inf "
      "9223372036854775808 007 0x7f 18446744073709551615");
  const std::vector<std::string> tokens_ = words(
      "[ ] { } [[ ]] [] {} \" \"\" \"\"\" ''' \\ , : . = # | null true 0F0 0:0B1 \\u0000 \\ud800 \xff \xef\xbb\xbf");
  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace gyre::fuzz
