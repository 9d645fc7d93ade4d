// Tokens that are found literally in a text, before the model sees it: the "added_tokens" of a tokenizer.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre {

struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false;             // only if no word character is before or after it
  bool lstrip = false, rstrip = false;  // includes the blanks on that side
  bool normalized = false;              // found in the text after the normalizer
};

// Throws InputError for invalid entries.
std::vector<AddedToken> parse_added_tokens(const nlohmann::json& json, const std::string& origin);

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  // Splits a text from left to right, with the longest token at each place. Calls visit_text(part, begins) for the text
  // between tokens, where `begins` means that `text` begins with it, and visit_token(id) for tokens.
  void split(std::string_view text, const std::function<void(std::string_view part, bool begins)>& visit_text,
             const std::function<void(int32_t id)>& visit_token) const;
  bool empty() const { return tokens_.empty(); }
  size_t longest() const { return longest_; }  // in bytes

 private:
  const AddedToken* longest_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;  // sorted by first byte, then the longest first
  size_t longest_ = 0;
  std::array<std::pair<uint32_t, uint32_t>, 256> by_first_{};  // range in tokens_ for each first byte
};

}  // namespace gyre
