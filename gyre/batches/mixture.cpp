#include "gyre/batches/mixture.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gyre/core/random.h"

namespace gyre {
namespace {

// The number of sequences of each source in a pattern: largest-remainder rounding, at least one each.
std::map<std::string, int64_t> shares_of(const Mixture::Weights& weights) {
  double total = 0;
  for (const auto& [name, weight] : weights) total += weight;
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const auto& [name, weight] : weights) {
    const double exact = weight / total * static_cast<double>(kMixturePattern);
    shares.push_back(std::max<int64_t>(1, static_cast<int64_t>(exact)));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  int64_t sum = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (; sum < kMixturePattern; ++sum) {
    const auto largest = std::max_element(remainders.begin(), remainders.end()) - remainders.begin();
    ++shares[static_cast<size_t>(largest)];
    remainders[static_cast<size_t>(largest)] -= 1;
  }
  for (; sum > kMixturePattern; --sum) --*std::max_element(shares.begin(), shares.end());
  std::map<std::string, int64_t> by_name;
  auto share = shares.begin();
  for (const auto& [name, weight] : weights) by_name[name] = *share++;
  return by_name;
}

}  // namespace

MixtureRecord Mixture::continued(const Weights& weights, int64_t seed, const MixtureRecord& before, int64_t sequences) {
  MixtureRecord record{0, shares_of(weights), {}};
  if (before.shares == record.shares) return before;
  if (!before.shares.empty()) {
    record.since = sequences;
    record.used = Mixture(before, seed).used_before(sequences);
  }
  for (const auto& [name, share] : record.shares) record.used.try_emplace(name, 0);
  return record;
}

Mixture::Mixture(const Weights& weights, int64_t seed, const MixtureRecord& before, int64_t sequences)
    : Mixture(continued(weights, seed, before, sequences), seed) {}

Mixture::Mixture(MixtureRecord record, int64_t seed) : record_(std::move(record)) {
  for (const auto& [name, share] : record_.shares) {
    shares_.push_back(static_cast<uint64_t>(share));
    used_.push_back(static_cast<uint64_t>(record_.used.at(name)));
  }
  if (shares_.size() == 1) return;
  for (size_t source = 0; source < shares_.size(); ++source) {
    sources_.insert(sources_.end(), shares_[source], static_cast<uint16_t>(source));
  }
  RandomStream stream(static_cast<uint64_t>(seed), StreamPurpose::Mixture, static_cast<uint64_t>(record_.since));
  for (size_t i = sources_.size() - 1; i > 0; --i) std::swap(sources_[i], sources_[stream.below(i + 1)]);
  std::vector<uint16_t> counts(shares_.size(), 0);
  for (const uint16_t source : sources_) numbers_.push_back(counts[source]++);
}

Mixture::Draw Mixture::at(uint64_t sequence) const {
  const uint64_t since = sequence - static_cast<uint64_t>(record_.since);
  if (sources_.empty()) return {0, used_.front() + since};
  const size_t place = since % kMixturePattern;
  const size_t source = sources_[place];
  return {source, used_[source] + since / kMixturePattern * shares_[source] + numbers_[place]};
}

// By the source's name, also of sources that are in the mixture no more.
std::map<std::string, int64_t> Mixture::used_before(int64_t sequences) const {
  const int64_t patterns = (sequences - record_.since) / kMixturePattern;
  const int64_t rest = (sequences - record_.since) % kMixturePattern;
  std::map<std::string, int64_t> used = record_.used;
  uint16_t source = 0;
  for (const auto& [name, share] : record_.shares) {
    const auto in_rest = sources_.empty() ? rest : std::count(sources_.begin(), sources_.begin() + rest, source);
    used[name] += patterns * share + in_rest;
    ++source;
  }
  return used;
}

}  // namespace gyre
