#include "gyre/batches/token_batches.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/random.h"

namespace gyre {
namespace {

void check_length(const TokenFile& file, int64_t context) {
  if (file.size() > context) return;
  throw InputError(
      fmt::format("{}: has {} tokens, and a sequence of [model] context {} needs {}; prepare more text (or a "
                  "larger --val-fraction), or shorten the context",
                  file.path().string(), file.size(), context, context + 1));
}

// Sequence s begins at begin_of(s); targets are the inputs one token on.
template <typename BeginOf>
Batch read_batch(const TokenFile& file, int64_t sequences, int64_t context, int64_t vocabulary, BeginOf begin_of) {
  const at::Tensor tokens = at::empty({sequences, context + 1}, at::kLong);
  auto* data = tokens.data_ptr<int64_t>();
  for (int64_t s = 0; s < sequences; ++s) {
    file.read(begin_of(s), {data + s * (context + 1), static_cast<size_t>(context + 1)}, vocabulary);
  }
  return {tokens.narrow(1, 0, context).contiguous(), tokens.narrow(1, 1, context).contiguous()};
}

}  // namespace

RandomTokenBatches::RandomTokenBatches(const TokenFile& file, int64_t sequences, int64_t context, int64_t seed,
                                       int64_t vocabulary)
    : file_(file),
      sequences_(sequences),
      context_(context),
      seed_(static_cast<uint64_t>(seed)),
      vocabulary_(vocabulary) {
  check_length(file, context);
}

Batch RandomTokenBatches::batch(int64_t index) const {
  const auto beginnings = static_cast<uint64_t>(file_.size() - context_);
  return read_batch(file_, sequences_, context_, vocabulary_, [&](int64_t s) {
    RandomStream stream(seed_, StreamPurpose::Batches, static_cast<uint64_t>(index), static_cast<uint32_t>(s));
    return static_cast<int64_t>(stream.below(beginnings));
  });
}

SequentialTokenBatches::SequentialTokenBatches(const TokenFile& file, int64_t sequences, int64_t context,
                                               int64_t vocabulary)
    : file_(file), context_(context), vocabulary_(vocabulary) {
  check_length(file, context);
  const int64_t stretches = (file.size() - 1) / context;
  sequences_ = std::min(sequences, stretches);
  count_ = stretches / sequences_;
}

Batch SequentialTokenBatches::batch(int64_t index) const {
  return read_batch(file_, sequences_, context_, vocabulary_,
                    [&](int64_t s) { return (index * sequences_ + s) * context_; });
}

}  // namespace gyre
