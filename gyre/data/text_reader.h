// Texts as a stream of chunks, and the documents in them. Chunks are read in order; what is in one can be taken apart
// anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/data/byte_source.h"

namespace gyre {

// How a text has documents in it.
struct TextLayout {
  std::string name;         // of the text, in errors
  bool json_lines = false;  // a document is the string `field` of the object on a line
  std::string field = "text";
  std::string separator;  // of plain text: what stands between documents; empty: all is one
  // Where the beginning of a long text may be cut (Tokenizer::cut); 0: nowhere. Empty: where a line begins.
  std::function<size_t(std::string_view)> cut = {};
};

// About a megabyte of a text: plain text cut where its layout says, else where a line begins, else between characters;
// JSON in whole lines. It depends on the text alone where that is.
struct TextChunk {
  std::string text;
  int64_t offset = 0;      // of its first byte in the whole text
  int64_t first_line = 1;  // of JSON: the number of its first line
  struct Part {            // of plain text: a document, or what of one lies in this chunk
    size_t begin = 0, end = 0;
    bool ends_document = false, begins_document = false;
  };
  std::vector<Part> parts;
};

class TextReader {
 public:
  // Both must outlive it.
  TextReader(ByteSource& bytes, const TextLayout& layout) : bytes_(bytes), layout_(layout) {}
  // InputError: cannot be read, a line of JSON longer than memory should hold.
  std::optional<TextChunk> next();

 private:
  void fill(size_t bytes);
  size_t end_of_plain_chunk(std::vector<TextChunk::Part>& parts) const;
  size_t end_of_lines();

  ByteSource& bytes_;
  const TextLayout& layout_;
  std::string pending_;
  int64_t offset_ = 0, line_ = 1;
  bool within_document_ = false;
};

// A document, or a piece of a long one.
struct TextPart {
  std::string_view text;
  bool begins_document = false, ends_document = false;
};

// Calls visit for the documents in a chunk, the long ones in several pieces. InputError: not UTF-8 (with the offset),
// no JSON, no such field, no string (with the number of the line).
void for_each_part(const TextChunk& chunk, const TextLayout& layout, const std::function<void(const TextPart&)>& visit);

}  // namespace gyre
