// Reads what the sentencepiece library does not expose of a model: its pieces, and how it treats a text before it looks
// for them. The file is a protobuf (ModelProto); only the fields named here are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

struct SentencePiece {
  enum Type { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  std::string text;
  float score = 0;
  int64_t type = Normal;
};

struct SentencePieceModel {
  enum Type { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };
  std::vector<SentencePiece> pieces;
  int64_t type = Unigram;
  bool byte_fallback = false;
  bool blanks_at_ends = false;  // a word's blank follows it (treat_whitespace_as_suffix)
  std::string charsmap;         // the compiled normalizer; empty: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  // Throws InputError if it is not a sentencepiece model, or has an unknown type.
  static SentencePieceModel parse(std::string_view bytes, const std::string& origin);
  std::optional<int32_t> find(std::string_view piece) const;
};

// The sign that sentencepiece writes for a blank, U+2581.
inline constexpr std::string_view kBlankSign = "\xe2\x96\x81";

}  // namespace gyre
