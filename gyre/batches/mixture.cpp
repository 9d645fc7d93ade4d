#include "gyre/batches/mixture.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gyre/core/random.h"

namespace gyre {
namespace {

constexpr uint64_t kPatternLength = 1 << 16;

// The number of sequences of each source in a pattern: largest-remainder rounding, at least one each.
std::vector<uint64_t> shares_of(const std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint64_t> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / total * static_cast<double>(kPatternLength);
    shares.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(exact)));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  uint64_t sum = std::accumulate(shares.begin(), shares.end(), uint64_t{0});
  for (; sum < kPatternLength; ++sum) {
    const auto largest = std::max_element(remainders.begin(), remainders.end()) - remainders.begin();
    ++shares[static_cast<size_t>(largest)];
    remainders[static_cast<size_t>(largest)] -= 1;
  }
  for (; sum > kPatternLength; --sum) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

}  // namespace

Mixture::Mixture(const std::vector<double>& weights, int64_t seed) : shares_(shares_of(weights)) {
  if (weights.size() == 1) return;
  for (size_t source = 0; source < shares_.size(); ++source) {
    sources_.insert(sources_.end(), shares_[source], static_cast<uint16_t>(source));
  }
  RandomStream stream(static_cast<uint64_t>(seed), StreamPurpose::Mixture, 0);
  for (size_t i = sources_.size() - 1; i > 0; --i) std::swap(sources_[i], sources_[stream.below(i + 1)]);
  std::vector<uint16_t> counts(shares_.size(), 0);
  for (const uint16_t source : sources_) numbers_.push_back(counts[source]++);
}

Mixture::Draw Mixture::at(uint64_t sequence) const {
  if (sources_.empty()) return {0, sequence};
  const size_t place = sequence % kPatternLength;
  const size_t source = sources_[place];
  return {source, sequence / kPatternLength * shares_[source] + numbers_[place]};
}

}  // namespace gyre
