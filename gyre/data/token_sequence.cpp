#include "gyre/data/token_sequence.h"

#include <algorithm>
#include <utility>

namespace gyre {

TokenSequence::TokenSequence(std::vector<std::shared_ptr<const TokenFile>> files, std::string name)
    : files_(std::move(files)), beginnings_{0}, name_(std::move(name)) {
  for (const auto& file : files_) beginnings_.push_back(beginnings_.back() + file->size());
  size_ = beginnings_.back();
}

void TokenSequence::read(int64_t begin, std::span<int64_t> out, int64_t vocabulary) const {
  begin += first_;
  auto next = std::upper_bound(beginnings_.begin(), beginnings_.end(), begin);
  for (auto file = static_cast<size_t>(next - beginnings_.begin()) - 1; !out.empty(); ++file) {
    const auto count = std::min(static_cast<int64_t>(out.size()), beginnings_[file + 1] - begin);
    files_[file]->read(begin - beginnings_[file], out.first(static_cast<size_t>(count)), vocabulary);
    out = out.subspan(static_cast<size_t>(count));
    begin += count;
  }
}

TokenSequence TokenSequence::part(int64_t begin, int64_t size) const {
  TokenSequence part = *this;
  part.first_ += begin;
  part.size_ = size;
  return part;
}

}  // namespace gyre
