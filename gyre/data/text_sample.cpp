#include "gyre/data/text_sample.h"

#include <algorithm>

#include "gyre/core/utf8.h"

namespace gyre {
namespace {

constexpr size_t kMaxLineBytes = 4096;

}  // namespace

TextSample::TextSample(int64_t total_bytes, int64_t wanted)
    : share_(std::min(1.0, static_cast<double>(wanted) / static_cast<double>(total_bytes))) {}

void TextSample::begin_chunk(size_t bytes) {
  room_ += share_ * static_cast<double>(bytes);
}

void TextSample::add(std::string_view piece) {
  while (!piece.empty() && room_ > 0) {
    size_t end = std::min(piece.find('\n'), piece.size());
    if (end > kMaxLineBytes) end = whole_characters(piece.substr(0, kMaxLineBytes));
    if (end > 0) lines_.emplace_back(piece.substr(0, end));
    const size_t taken = end < piece.size() && piece[end] == '\n' ? end + 1 : end;
    room_ -= static_cast<double>(taken);
    piece.remove_prefix(taken);
  }
}

}  // namespace gyre
