// Reads texts as a stream of chunks, and finds the documents in them. Chunks are read in order; each can be split into
// documents on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/data/byte_source.h"

namespace gyre {

// How documents are laid out in a text.
struct TextLayout {
  std::string name;         // what errors call the text
  bool json_lines = false;  // each line is an object whose string `field` is a document
  std::string field = "text";
  std::string separator;  // for plain text: what separates documents; empty: the text is one document
  // Where a long piece of text may be cut (Tokenizer::cut); 0: nowhere. Without this function, cut where a line begins.
  std::function<size_t(std::string_view)> cut = {};
};

// About 1 MiB of a text. Plain text is cut where its layout says, else where a line begins, else between characters;
// JSON between lines. The places depend only on text and layout.
struct TextChunk {
  std::string text;
  int64_t offset = 0;      // position of its first byte in the whole text
  int64_t first_line = 1;  // for JSON: the number of its first line
  struct Part {            // for plain text: a document, or the part of one in this chunk
    size_t begin = 0, end = 0;
    bool ends_document = false, begins_document = false;
  };
  std::vector<Part> parts;
};

class TextReader {
 public:
  // Both must outlive it.
  TextReader(ByteSource& bytes, const TextLayout& layout) : bytes_(bytes), layout_(layout) {}
  // The next chunk; empty at the end. Throws InputError if the text cannot be read, or a line of JSON is too long.
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

// Calls visit for the documents in a chunk; long ones come in several pieces. Throws InputError for plain text that is
// not UTF-8 (with the offset), or a line that is not UTF-8 or JSON or has no such string field (with the line number).
void for_each_part(const TextChunk& chunk, const TextLayout& layout, const std::function<void(const TextPart&)>& visit);

}  // namespace gyre
