#include "gyre/train/drains.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace gyre {

DrainPlan::DrainPlan(const RunSettings& run)
    : updates(run.updates), eval_every(run.eval_every), checkpoint_every(run.checkpoint_every), extra(run.drains) {}

int64_t DrainPlan::next(int64_t done) const {
  int64_t point = updates;
  for (const int64_t every : {eval_every, checkpoint_every}) {
    if (every > 0) point = std::min(point, (done / every + 1) * every);
  }
  for (const int64_t at : extra) {
    if (at > done) point = std::min(point, at);
  }
  return point;
}

int64_t DrainPlan::count() const {
  const int64_t last = updates - 1;  // those before the end
  const auto multiples = [&](int64_t every) { return every > 0 ? last / every : 0; };
  int64_t points = 1 + multiples(eval_every) + multiples(checkpoint_every);
  if (eval_every > 0 && checkpoint_every > 0) {  // the multiples of both were counted twice
    points -= multiples(eval_every) / (checkpoint_every / std::gcd(eval_every, checkpoint_every));
  }
  const auto is_multiple = [](int64_t at, int64_t every) { return every > 0 && at % every == 0; };
  std::set<int64_t> others;
  for (const int64_t at : extra) {
    if (at <= last && !is_multiple(at, eval_every) && !is_multiple(at, checkpoint_every)) others.insert(at);
  }
  return points + std::ssize(others);
}

}  // namespace gyre
