#include "gyre/tokenizers/sentencepiece/unigram_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gyre/core/json_fields.h"
#include "gyre/tokenizers/token_text.h"

namespace gyre {

bool is_unigram_of(std::string_view tokenizer_json, const SentencePieceModel& model) {
  using Json = nlohmann::json;
  const auto json = parse_json(tokenizer_json);
  const Json settings = json && json->is_object() ? json->value("model", Json()) : Json();
  if (!settings.is_object()) return false;
  const Json tokens = settings.value("vocab", Json());  // [text, score] each
  const Json added = json->value("added_tokens", Json());
  const auto is_piece = [](const Json& token, const SentencePiece& piece) {
    return token.is_array() && !token.empty() && token[0] == piece.text;
  };
  const auto is_known = [&](const Json& token) {
    const auto number = token.is_object() ? whole_number(token.value("id", Json())) : std::nullopt;
    return number && *number >= 0 && *number < static_cast<int64_t>(model.pieces.size()) &&
           token_text(token) == model.pieces[static_cast<size_t>(*number)].text;
  };
  return settings.value("type", Json()) == "Unigram" && tokens.is_array() &&
         std::equal(tokens.begin(), tokens.end(), model.pieces.begin(), model.pieces.end(), is_piece) &&
         (added.is_null() || (added.is_array() && std::ranges::all_of(added, is_known)));
}

}  // namespace gyre
