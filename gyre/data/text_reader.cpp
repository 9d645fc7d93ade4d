#include "gyre/data/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/text.h"
#include "gyre/core/utf8.h"

namespace gyre {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kMaxLineBytes = size_t{256} << 20;  // for JSON

// Whether the text begins, or may begin once it goes on, with a blank of some kind.
bool begins_blank(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kWide = {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe3\x80\x80"};
  if (text.size() < 3) return true;
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first <= ' ';
  return text.starts_with("\xe2\x80") || text.starts_with("\xe2\x81") ||
         std::any_of(kWide.begin(), kWide.end(), [&](std::string_view blank) { return text.starts_with(blank); });
}

// Where to cut `text`: where its layout says; else after its last line end that no blank follows, since tokens of
// blanks may span line ends; else after its last line end, else after its last whole character.
size_t cut(std::string_view text, const TextLayout& layout) {
  if (const size_t at = layout.cut ? layout.cut(text) : 0; at > 0) return at;
  for (size_t at = text.rfind('\n'); at != std::string_view::npos && at > 0; at = text.rfind('\n', at - 1)) {
    if (!begins_blank(text.substr(at + 1))) return at + 1;
  }
  const size_t line = text.rfind('\n');
  return line == std::string_view::npos ? whole_characters(text) : line + 1;
}

void check_utf8(std::string_view text, int64_t offset, const std::string& name) {
  Utf8Checker checker;
  if (const auto bad = checker.check(text)) {
    throw InputError(fmt::format("{}: not UTF-8 at byte {}; convert it first, for example with iconv -t UTF-8", name,
                                 offset + *bad));
  }
  if (!checker.complete()) {
    throw InputError(fmt::format("{}: ends inside a character, at byte {}; is it complete?", name,
                                 offset + static_cast<int64_t>(text.size())));
  }
}

// Why a line cannot be read as JSON, after "the line is no JSON". Names what json.dumps of Python writes beyond JSON.
std::string why_no_json(std::string_view line) {
  if (is_nested_too_deeply(line)) return fmt::format(" that gyre reads: it is nested more than {} deep", kMaxJsonDepth);
  try {
    [[maybe_unused]] const auto refused = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    if (std::string_view(error.what()).find("surrogate") != std::string_view::npos) {
      return ": it has half of a character, an escape from \\ud800 to \\udfff without its other half; leave it out, or "
             "write \\ufffd for it";
    }
    const std::string_view rest = line.substr(std::min(line.size(), std::max<size_t>(error.byte, 1) - 1));
    if (rest.starts_with("NaN") || rest.starts_with("Infinity")) {
      return ": NaN and Infinity are no numbers there; write null";
    }
  } catch (const nlohmann::json::out_of_range&) {
    return " that gyre reads: a number is too large";
  }
  return "";
}

// The document in a line of JSON.
std::string document_of(std::string_view line, int64_t number, const TextLayout& layout) {
  const auto fail = [&](const std::string& what) {
    throw InputError(fmt::format("{}:{}: {}", layout.name, number, what));
  };
  if (Utf8Checker checker; checker.check(line) || !checker.complete()) fail("the line is not UTF-8");
  auto json = parse_json(line);
  if (!json) {
    fail(number == 1 && line.starts_with('[')
             ? "the line is no JSON object; write a list as a line for each of its items"
             : "the line is no JSON" + why_no_json(line));
  }
  if (!json->is_object()) fail("the line is no JSON object");
  const auto found = json->find(layout.field);
  if (found == json->end()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json->items()) keys.push_back(printable(key));
    if (keys.size() > 8) keys.resize(8);
    fail(fmt::format("the object has no '{}' (it has: {}); give --field", printable(layout.field), join(keys, ", ")));
  }
  if (!found->is_string()) fail(fmt::format("'{}' is no string", printable(layout.field)));
  return std::move(found->get_ref<std::string&>());
}

// Visits a document in pieces no longer than a chunk of plain text.
void visit_whole(std::string_view document, const TextLayout& layout,
                 const std::function<void(const TextPart&)>& visit) {
  bool begins = true;
  while (document.size() > kChunkBytes) {
    const size_t end = cut(document.substr(0, kChunkBytes), layout);
    visit({document.substr(0, end), begins, false});
    document.remove_prefix(end);
    begins = false;
  }
  visit({document, begins, true});
}

}  // namespace

void TextReader::fill(size_t bytes) {
  const size_t there = pending_.size();
  if (there >= bytes) return;
  pending_.resize(bytes);
  pending_.resize(there + bytes_.read({pending_.data() + there, bytes - there}));
}

// Documents are found from left to right. If the cut falls into a separator, the chunk ends after it.
size_t TextReader::end_of_plain_chunk(std::vector<TextChunk::Part>& parts) const {
  const bool last = pending_.size() <= kChunkBytes;
  size_t end = last ? pending_.size() : cut(std::string_view(pending_).substr(0, kChunkBytes), layout_);
  size_t begin = 0;
  while (!layout_.separator.empty()) {
    const size_t found = pending_.find(layout_.separator, begin);
    if (found == std::string::npos || found >= end) break;
    parts.push_back({begin, found, true});
    begin = found + layout_.separator.size();
    end = std::max(end, begin);
  }
  if (begin < end || last) parts.push_back({begin, end, last});
  return end;
}

size_t TextReader::end_of_lines() {
  for (size_t room = kChunkBytes;; room *= 2) {
    fill(room);
    if (pending_.size() < room) return pending_.size();
    if (const size_t line = pending_.rfind('\n'); line != std::string::npos) return line + 1;
    if (room >= kMaxLineBytes) {
      throw InputError(fmt::format("{}:{}: the line is longer than {}; is this JSON with an object a line?",
                                   layout_.name, line_, human_bytes(static_cast<double>(kMaxLineBytes))));
    }
  }
}

std::optional<TextChunk> TextReader::next() {
  fill(kChunkBytes + std::max<size_t>(1, layout_.separator.size()));
  if (pending_.empty()) return std::nullopt;
  TextChunk chunk;
  chunk.offset = offset_;
  chunk.first_line = line_;
  const size_t end = layout_.json_lines ? end_of_lines() : end_of_plain_chunk(chunk.parts);
  for (TextChunk::Part& part : chunk.parts) {
    part.begins_document = !within_document_;
    within_document_ = !part.ends_document;
  }
  chunk.text = pending_.substr(0, end);
  pending_.erase(0, end);
  offset_ += static_cast<int64_t>(end);
  if (layout_.json_lines) line_ += std::count(chunk.text.begin(), chunk.text.end(), '\n');
  return chunk;
}

void for_each_part(const TextChunk& chunk, const TextLayout& layout,
                   const std::function<void(const TextPart&)>& visit) {
  if (!layout.json_lines) {
    check_utf8(chunk.text, chunk.offset, layout.name);
    for (const TextChunk::Part& part : chunk.parts) {
      visit({std::string_view(chunk.text).substr(part.begin, part.end - part.begin), part.begins_document,
             part.ends_document});
    }
    return;
  }
  int64_t number = chunk.first_line;
  for (std::string_view rest = chunk.text; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      visit_whole(document_of(line, number, layout), layout, visit);
    }
  }
}

}  // namespace gyre
