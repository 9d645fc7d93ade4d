#include "gyre/data/token_splits.h"

#include <cmath>

#include "gyre/core/random.h"

namespace gyre {

TokenSplits::TokenSplits(const std::filesystem::path& directory, int64_t vocabulary, const Options& options,
                         FileSystem& files)
    : options_(options),
      train_(directory, kTrainFile, vocabulary, options.shard_tokens, files),
      val_(directory, kValFile, vocabulary, options.shard_tokens, files) {
  begin_document();
}

void TokenSplits::begin_document() {
  current_ = &train_;
  beginning_ = train_.size();
  if (!options_.by_documents || options_.val_fraction <= 0) return;
  while (documents_ >= stretch_end_) {
    const int64_t begin = stretch_end_;
    stretch_end_ = std::llround(std::floor(static_cast<double>(stretch_ + 1) / options_.val_fraction));
    RandomStream stream(static_cast<uint64_t>(options_.seed), StreamPurpose::Split, static_cast<uint64_t>(stretch_));
    // Take the last document of the first stretch: if there are fewer documents than a stretch, none is taken.
    const auto length = static_cast<uint64_t>(stretch_end_ - begin);
    kept_ = stretch_ == 0 ? stretch_end_ - 1 : begin + static_cast<int64_t>(stream.below(length));
    ++stretch_;
  }
  if (documents_ == kept_) current_ = &val_;
}

bool TokenSplits::keep_end(int64_t begin) {
  const auto kept =
      static_cast<int64_t>(std::floor(static_cast<double>(train_.size() - begin) * options_.val_fraction));
  if (kept > 0) train_.move_tail(kept, val_);
  return kept > 0;
}

void TokenSplits::end_document(int32_t end) {
  if (!options_.by_documents && keep_end(beginning_)) current_ = &val_;
  current_->append({&end, 1});
  ++documents_;
  begin_document();
}

void TokenSplits::finish() {
  if (options_.by_documents && val_.size() == 0) keep_end(0);
}

}  // namespace gyre
