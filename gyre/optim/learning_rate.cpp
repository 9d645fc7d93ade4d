#include "gyre/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gyre {
namespace {

// Of `span` updates, `done`: between 0 and 1.
double progress(int64_t done, int64_t span) {
  return std::clamp(static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, span)), 0.0, 1.0);
}

// From 1 at p = 0 to 0 at p = 1.
double falling(const std::string& shape, double p) {
  if (shape == "cosine") return (1 + std::cos(std::numbers::pi * p)) / 2;
  if (shape == "sqrt") return 1 - std::sqrt(p);
  return 1 - p;
}

}  // namespace

double LearningRateSchedule::at(int64_t update) const {
  if (update < warmup) return peak * static_cast<double>(update) / static_cast<double>(warmup);
  if (decay == "constant") return peak;
  if (decay == "inverse-sqrt") {
    const auto whole = static_cast<double>(std::max<int64_t>(1, warmup));
    return peak * std::max(floor, std::sqrt(whole / static_cast<double>(std::max<int64_t>(1, update))));
  }
  double left = 0;
  if (decay == "wsd") {
    const int64_t updates = std::max<int64_t>(1, cooldown > 0 ? cooldown : total / 5);
    left = falling(cooldown_shape, progress(update - (total - updates), updates));
  } else {
    left = falling(decay, progress(update - warmup, total - warmup));
  }
  return peak * (floor + (1 - floor) * left);
}

}  // namespace gyre
