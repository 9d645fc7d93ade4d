#include "gyre/tokenizers/json/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/core/json_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/tokenizers/json/pattern.h"
#include "gyre/tokenizers/json/unicode.h"

namespace gyre {
namespace {

// The character that ends at text[end].
char32_t character_before(std::string_view text, size_t end, size_t& begin) {
  begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return character_at(text, begin).code;
}

bool is_alone(std::string_view text, size_t begin, size_t end) {
  size_t before = 0;
  return (begin == 0 || !unicode::is_word(character_before(text, begin, before))) &&
         (end == text.size() || !unicode::is_word(character_at(text, end).code));
}

}  // namespace

std::vector<AddedToken> parse_added_tokens(const nlohmann::json& json, const std::string& origin) {
  const std::string where = origin + ": added_tokens";
  std::vector<AddedToken> tokens;
  if (json.is_null()) return tokens;
  if (!json.is_array()) throw InputError(fmt::format("{}: must be a list", where));
  for (const auto& item : json) {
    JsonFields fields(item, where);
    AddedToken token;
    fields.need("id", token.id);
    fields.need("content", token.content);
    if (token.content.empty()) fields.fail("a token is empty");
    token.single_word = flag_of(item, "single_word", false);
    token.lstrip = flag_of(item, "lstrip", false);
    token.rstrip = flag_of(item, "rstrip", false);
    token.normalized = flag_of(item, "normalized", !flag_of(item, "special", false));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  const auto first = [](const AddedToken& token) { return static_cast<unsigned char>(token.content.front()); };
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](const AddedToken& a, const AddedToken& b) {
    return first(a) != first(b) ? first(a) < first(b) : a.content.size() > b.content.size();
  });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    auto& [begin, end] = by_first_[first(tokens_[i])];
    if (end == 0) begin = static_cast<uint32_t>(i);
    longest_ = std::max(longest_, tokens_[i].content.size());
    end = static_cast<uint32_t>(i + 1);
  }
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at) const {
  const auto [begin, end] = by_first_[static_cast<unsigned char>(text[at])];
  for (size_t i = begin; i < end; ++i) {
    if (text.substr(at).starts_with(tokens_[i].content)) return &tokens_[i];
  }
  return nullptr;
}

void AddedTokens::split(std::string_view text, const std::function<void(std::string_view, bool)>& visit_text,
                        const std::function<void(int32_t)>& visit_token) const {
  if (tokens_.empty()) {
    if (!text.empty()) visit_text(text, true);
    return;
  }
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token =
        by_first_[static_cast<unsigned char>(text[at])].second == 0 ? nullptr : longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && !is_alone(text, begin, end)) continue;
    if (token->lstrip) {
      for (size_t before = begin; begin > done && unicode::is_white_space(character_before(text, begin, before));) {
        begin = before;
      }
    }
    if (token->rstrip) {
      while (end < text.size() && unicode::is_white_space(character_at(text, end).code)) {
        end += character_at(text, end).bytes;
      }
    }
    if (begin > done) visit_text(text.substr(done, begin - done), done == 0);
    visit_token(static_cast<int32_t>(token->id));
    // The next token may be within blanks that this one has included; the blanks after it are then text again.
    done = end;
  }
  if (done < text.size()) visit_text(text.substr(done), done == 0);
}

}  // namespace gyre
