#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"

#include <fmt/format.h>

#include <cstring>

#include "gyre/core/error.h"

namespace gyre {
namespace {

struct NotProtobuf {};

// Calls visit(number, value, bytes) for each field of a message: a varint is passed as `value`, any other type as
// `bytes`.
template <typename Visit>
void for_each_field(std::string_view message, Visit&& visit) {
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (message.empty()) throw NotProtobuf();
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw NotProtobuf();
  };
  const auto take = [&](uint64_t bytes) {
    if (bytes > message.size()) throw NotProtobuf();
    const std::string_view taken = message.substr(0, bytes);
    message.remove_prefix(bytes);
    return taken;
  };
  while (!message.empty()) {
    const uint64_t key = varint();
    const uint64_t number = key >> 3;
    switch (key & 7) {
      case 0:
        visit(number, varint(), std::string_view());
        break;
      case 1:
        visit(number, uint64_t{0}, take(8));
        break;
      case 2:
        visit(number, uint64_t{0}, take(varint()));
        break;
      case 5:
        visit(number, uint64_t{0}, take(4));
        break;
      default:
        throw NotProtobuf();
    }
  }
}

SentencePiece piece_of(std::string_view message) {
  SentencePiece piece;
  for_each_field(message, [&](uint64_t number, uint64_t value, std::string_view bytes) {
    if (number == 1) piece.text = bytes;
    if (number == 2 && bytes.size() == sizeof(float)) std::memcpy(&piece.score, bytes.data(), sizeof(float));
    if (number == 3) piece.type = static_cast<int64_t>(value);
  });
  return piece;
}

}  // namespace

SentencePieceModel SentencePieceModel::parse(std::string_view bytes, const std::string& origin) {
  SentencePieceModel model;
  try {
    for_each_field(bytes, [&](uint64_t number, uint64_t, std::string_view part) {
      if (number == 1) model.pieces.push_back(piece_of(part));
      if (number == 2) {  // trainer_spec
        for_each_field(part, [&](uint64_t field, uint64_t value, std::string_view) {
          if (field == 3) model.type = static_cast<int64_t>(value);
          if (field == 24) model.blanks_at_ends = value != 0;
          if (field == 35) model.byte_fallback = value != 0;
        });
      }
      if (number == 3) {  // normalizer_spec
        for_each_field(part, [&](uint64_t field, uint64_t value, std::string_view content) {
          if (field == 2) model.charsmap = content;
          if (field == 3) model.add_dummy_prefix = value != 0;
          if (field == 4) model.remove_extra_whitespaces = value != 0;
          if (field == 5) model.escape_whitespaces = value != 0;
        });
      }
    });
  } catch (const NotProtobuf&) {
    throw InputError(fmt::format("{}: not a sentencepiece model, or damaged", origin));
  }
  if (model.pieces.empty()) throw InputError(fmt::format("{}: not a sentencepiece model: it has no pieces", origin));
  if (model.type < Unigram || model.type > Char) {
    throw InputError(
        fmt::format("{}: a sentencepiece model of type {}, which is unknown; known: 1 (unigram), 2 (BPE), 3 (word), "
                    "4 (char)",
                    origin, model.type));
  }
  return model;
}

std::optional<int32_t> SentencePieceModel::find(std::string_view piece) const {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].text == piece) return static_cast<int32_t>(id);
  }
  return std::nullopt;
}

}  // namespace gyre
