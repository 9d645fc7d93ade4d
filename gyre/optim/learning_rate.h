// The learning rate over a run: linear warm-up, then cosine, linear or no decay.
#pragma once

#include <cstdint>
#include <string>

namespace gyre {

// With t the update (from 1), w the warm-up, T the total and p = (t - w) / (T - w), clamped to [0, 1]:
//   t < w:     peak * t / w
//   cosine:    peak * (floor + (1 - floor) * (1 + cos(pi p)) / 2)
//   linear:    peak * (floor + (1 - floor) * (1 - p))
//   constant:  peak
struct LearningRateSchedule {
  double peak;
  int64_t warmup;
  int64_t total;
  std::string decay;  // "cosine", "linear" or "constant"
  double floor;       // what is left at the end, as a fraction of peak

  double at(int64_t update) const;
};

}  // namespace gyre
