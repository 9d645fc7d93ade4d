#include "gyre/batches/token_batches.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gyre/batches/shuffle.h"
#include "gyre/core/error.h"
#include "gyre/core/random.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// `purpose`: "train on".
void check_lengths(const std::vector<WeightedTokens>& sources, int64_t context, const char* purpose) {
  for (const WeightedTokens& source : sources) {
    if (source.tokens.size() > context) continue;
    throw InputError(
        fmt::format("{}: has {} to {}, and a sequence of [model] context {} needs {}; {}, or shorten the context",
                    source.tokens.name(), counted(source.tokens.size(), "token"), purpose, context, context + 1,
                    source.if_too_few));
  }
}

std::vector<double> weights_of(const std::vector<WeightedTokens>& sources) {
  std::vector<double> weights;
  for (const WeightedTokens& source : sources) weights.push_back(source.weight);
  return weights;
}

Mixture::Weights weights_by_name(const std::vector<WeightedTokens>& sources) {
  Mixture::Weights weights;
  for (const WeightedTokens& source : sources) weights[source.name] = source.weight;
  return weights;
}

// read(s, tokens) fills `tokens` with sequence s and its last target; targets are the inputs shifted by one token.
template <typename Read>
Batch read_batch(int64_t sequences, int64_t context, Read read) {
  const at::Tensor tokens = at::empty({sequences, context + 1}, at::kLong);
  auto* data = tokens.data_ptr<int64_t>();
  for (int64_t s = 0; s < sequences; ++s) {
    read(s, std::span<int64_t>(data + s * (context + 1), static_cast<size_t>(context + 1)));
  }
  return {tokens.narrow(1, 0, context).contiguous(), tokens.narrow(1, 1, context).contiguous()};
}

}  // namespace

DrawnTokenBatches::DrawnTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context,
                                     int64_t seed, int64_t vocabulary, SequenceOrder order,
                                     const DataPosition& position)
    : sources_(std::move(sources)),
      sequences_(sequences),
      context_(context),
      seed_(static_cast<uint64_t>(seed)),
      vocabulary_(vocabulary),
      order_(order),
      position_(position),
      mixture_(weights_by_name(sources_), seed, position.mixture, position.sequences) {
  check_lengths(sources_, context, "train on");
}

// Wraps around for microbatches before the run's first sequence; what they hold does not matter.
uint64_t DrawnTokenBatches::number_of(int64_t index, int64_t s) const {
  return static_cast<uint64_t>(position_.sequences + (index - position_.microbatches) * sequences_ + s);
}

int64_t DrawnTokenBatches::begin_of(const Mixture::Draw& draw, int64_t index, int64_t s) const {
  const int64_t size = sources_[draw.source].tokens.size();
  if (order_ == SequenceOrder::Random) {
    RandomStream stream(seed_, StreamPurpose::Batches, static_cast<uint64_t>(index), static_cast<uint32_t>(s));
    return static_cast<int64_t>(stream.below(static_cast<uint64_t>(size - context_)));
  }
  const auto stretches = static_cast<uint64_t>((size - 1) / context_);
  const uint64_t stretch =
      shuffled(draw.number % stretches, stretches, seed_, draw.number / stretches, static_cast<uint32_t>(draw.source));
  return static_cast<int64_t>(stretch) * context_;
}

Batch DrawnTokenBatches::batch(int64_t index) const {
  return read_batch(sequences_, context_, [&](int64_t s, std::span<int64_t> tokens) {
    const Mixture::Draw draw = mixture_.at(number_of(index, s));
    sources_[draw.source].tokens.read(begin_of(draw, index, s), tokens, vocabulary_);
  });
}

SequentialTokenBatches::SequentialTokenBatches(std::vector<WeightedTokens> sources, int64_t sequences, int64_t context,
                                               int64_t vocabulary, int64_t most)
    : sources_(std::move(sources)), sequences_(sequences), context_(context), vocabulary_(vocabulary) {
  check_lengths(sources_, context, "validate on");
  std::vector<int64_t> left;  // remaining sequences of each source
  for (const WeightedTokens& source : sources_) left.push_back((source.tokens.size() - 1) / context);
  sequences_ = std::min(sequences, *std::min_element(left.begin(), left.end()));
  std::vector<double> due(sources_.size(), 0);
  std::vector<int64_t> next(sources_.size(), 0);
  const std::vector<double> weights = weights_of(sources_);
  double total = 0;
  for (const double weight : weights) total += weight;
  while (count() < most) {
    for (size_t i = 0; i < due.size(); ++i) due[i] += weights[i];
    const auto source = static_cast<size_t>(std::max_element(due.begin(), due.end()) - due.begin());
    due[source] -= total;
    if (left[source] < sequences_) break;
    left[source] -= sequences_;
    plan_.push_back({source, next[source]});
    next[source] += sequences_ * context_;
  }
}

Batch SequentialTokenBatches::batch(int64_t index) const {
  const Stretch& stretch = plan_[static_cast<size_t>(index)];
  return read_batch(sequences_, context_, [&](int64_t s, std::span<int64_t> tokens) {
    sources_[stretch.source].tokens.read(stretch.begin + s * context_, tokens, vocabulary_);
  });
}

}  // namespace gyre
