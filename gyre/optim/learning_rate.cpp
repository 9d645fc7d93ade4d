#include "gyre/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gyre {

double LearningRateSchedule::at(int64_t update) const {
  if (update < warmup) return peak * static_cast<double>(update) / static_cast<double>(warmup);
  if (decay == "constant") return peak;
  const auto span = static_cast<double>(std::max<int64_t>(1, total - warmup));
  const double progress = std::clamp(static_cast<double>(update - warmup) / span, 0.0, 1.0);
  const double left = decay == "cosine" ? (1 + std::cos(std::numbers::pi * progress)) / 2 : 1 - progress;
  return peak * (floor + (1 - floor) * left);
}

}  // namespace gyre
