// Tokens that are found in a text as they are, before the model sees it: the "added_tokens" of a tokenizer.json.
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
  bool single_word = false;             // only where no word goes on at its ends
  bool lstrip = false, rstrip = false;  // takes the blanks on that side with it
  bool normalized = false;              // found in the text after the normalizer
};

// InputError for what is none.
std::vector<AddedToken> parse_added_tokens(const nlohmann::json& json, const std::string& origin);

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  // Takes a text apart, from left to right, the longest token at each place: text(part, begins) for what is between
  // tokens, `begins` where the text does; token(id) for them.
  void split(std::string_view text, const std::function<void(std::string_view part, bool begins)>& visit_text,
             const std::function<void(int32_t id)>& visit_token) const;
  bool empty() const { return tokens_.empty(); }
  size_t longest() const { return longest_; }  // in bytes

 private:
  const AddedToken* longest_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;  // by first byte, the longest first
  size_t longest_ = 0;
  std::array<std::pair<uint32_t, uint32_t>, 256> by_first_{};  // where a first byte's tokens are
};

}  // namespace gyre
