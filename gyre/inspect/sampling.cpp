#include "gyre/inspect/sampling.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Tokens with the likeliest first, sorted no further than they are asked for.
class Ranking {
 public:
  explicit Ranking(const at::Tensor& logits)
      : scores_(logits.data_ptr<float>()), order_(static_cast<size_t>(logits.size(0))) {
    std::iota(order_.begin(), order_.end(), 0);
  }
  size_t size() const { return order_.size(); }
  double score(int64_t token) const { return double{scores_[token]}; }
  int64_t operator[](size_t rank) {
    while (rank >= sorted_) {
      const size_t until = std::min(order_.size(), std::max<size_t>(64, 4 * sorted_));
      std::partial_sort(
          order_.begin() + static_cast<std::ptrdiff_t>(sorted_), order_.begin() + static_cast<std::ptrdiff_t>(until),
          order_.end(),
          [this](int64_t a, int64_t b) { return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b; });
      sorted_ = until;
    }
    return order_[rank];
  }

 private:
  const float* scores_;
  std::vector<int64_t> order_;
  size_t sorted_ = 0;
};

}  // namespace

void check(const SamplingOptions& options) {
  if (!(options.temperature >= 0))
    throw InputError(fmt::format("--temperature is {}; give 0 or more", options.temperature));
  if (options.top_k < 0) throw InputError(fmt::format("--top-k is {}; give 0 (all) or more", options.top_k));
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    throw InputError(fmt::format("--top-p is {}; give 0 to 1", options.top_p));
  }
}

int64_t sample(const at::Tensor& logits, const SamplingOptions& options, RandomStream& stream) {
  Ranking ranking(logits);
  const double highest = logits.max().item<double>();  // NaN if one of them is
  if (!std::isfinite(highest)) {
    throw Divergence("the model's logits are not finite: it has diverged; take an earlier checkpoint (--step)");
  }
  if (options.temperature == 0 || options.top_k == 1) return ranking[0];
  const auto weight = [&](int64_t token) { return std::exp((ranking.score(token) - highest) / options.temperature); };
  const bool keeps_all = options.top_k == 0 || static_cast<size_t>(options.top_k) >= ranking.size();
  // If no token is left out, the tokens' own order will do, and nothing has to be sorted.
  const auto nth = [&](size_t n, bool in_any_order) { return in_any_order ? static_cast<int64_t>(n) : ranking[n]; };
  size_t kept = keeps_all ? ranking.size() : static_cast<size_t>(options.top_k);
  double sum = 0;
  for (size_t n = 0; n < kept; ++n) sum += weight(nth(n, keeps_all));
  if (options.top_p < 1) {
    const double wanted = options.top_p * sum;
    size_t likeliest = 1;
    for (sum = weight(ranking[0]); likeliest < kept && sum < wanted; ++likeliest) sum += weight(ranking[likeliest]);
    kept = likeliest;
  }
  const bool in_any_order = keeps_all && options.top_p == 1;
  double left = stream.uniform() * sum;
  for (size_t n = 0; n + 1 < kept; ++n) {
    left -= weight(nth(n, in_any_order));
    if (left < 0) return nth(n, in_any_order);
  }
  return nth(kept - 1, in_any_order);
}

}  // namespace gyre
