#include "gyre/batches/masked_batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gyre/core/random.h"

namespace gyre {
namespace {

constexpr double kReplacedByMask = 0.8;
constexpr double kReplacedByRandom = 0.1;

}  // namespace

MaskedBatches::MaskedBatches(std::unique_ptr<BatchSource> text, const SpecialTokens& special, int64_t seed,
                             bool sentence_order)
    : text_(std::move(text)), special_(special), seed_(static_cast<uint64_t>(seed)), sentence_order_(sentence_order) {
  const at::Tensor first = text_->batch(0).inputs;
  tokens_per_batch_ = first.size(0) * (first.size(1) + kTokensAroundSegments);
}

Batch MaskedBatches::batch(int64_t index) const {
  const at::Tensor text = text_->batch(index).inputs;
  const int64_t sequences = text.size(0), content = text.size(1), context = content + kTokensAroundSegments;
  const int64_t first_length = content / 2;
  const auto target_count = std::max<int64_t>(1, std::llround(kMaskedShare * static_cast<double>(content)));
  Batch batch{at::empty({sequences, context}, at::kLong), at::full({sequences, context}, -1, at::kLong)};
  for (int64_t s = 0; s < sequences; ++s) {
    RandomStream stream(seed_, StreamPurpose::Masking, static_cast<uint64_t>(index), static_cast<uint32_t>(s));
    const int64_t* from = text.data_ptr<int64_t>() + s * content;
    int64_t* tokens = batch.inputs.data_ptr<int64_t>() + s * context;
    int64_t* targets = batch.targets.data_ptr<int64_t>() + s * context;

    const bool exchanged = sentence_order_ && stream.below(2) == 1;
    if (sentence_order_) targets[0] = exchanged ? 1 : 0;
    std::vector<int64_t> places;  // positions of the text's tokens in the sequence
    tokens[0] = special_.classify;
    int64_t at = 1;
    const auto append = [&](const int64_t* begin, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        places.push_back(at);
        tokens[at++] = begin[i];
      }
      tokens[at++] = special_.separator;
    };
    const std::pair<const int64_t*, int64_t> a{from, first_length}, b{from + first_length, content - first_length};
    append(exchanged ? b.first : a.first, exchanged ? b.second : a.second);
    append(exchanged ? a.first : b.first, exchanged ? a.second : b.second);

    // The first `target_count` tokens of a random order (Fisher-Yates).
    for (int64_t i = 0; i < target_count; ++i) {
      const auto pick = i + static_cast<int64_t>(stream.below(static_cast<uint64_t>(content - i)));
      std::swap(places[static_cast<size_t>(i)], places[static_cast<size_t>(pick)]);
      const int64_t place = places[static_cast<size_t>(i)];
      targets[place] = tokens[place];
      const double kind = stream.uniform();
      if (kind < kReplacedByMask) {
        tokens[place] = special_.mask;
      } else if (kind < kReplacedByMask + kReplacedByRandom) {
        tokens[place] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(special_.text)));
      }
    }
  }
  return batch;
}

}  // namespace gyre
