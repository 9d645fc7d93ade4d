// The learning rate over a run: linear warm-up, then one of several courses.
#pragma once

#include <cstdint>
#include <string>

namespace gyre {

// With t the update (from 1), w the warm-up, T the total, c the cooldown, p = (t - w) / (T - w) and
// q = (t - (T - c)) / c, both clamped to [0, 1]:
//   t < w:         peak * t / w
//   cosine:        peak * (floor + (1 - floor) * (1 + cos(pi p)) / 2)
//   linear:        peak * (floor + (1 - floor) * (1 - p))
//   constant:      peak
//   inverse-sqrt:  peak * max(floor, sqrt(max(w, 1) / t))                (Vaswani et al., 2017)
//   wsd:           peak * (floor + (1 - floor) * shape(q)); with shape "linear" 1 - q, "cosine" (1 + cos(pi q)) / 2,
//                  "sqrt" 1 - sqrt(q)                                    (Hu et al., 2024; Hägele et al., 2024)
struct LearningRateSchedule {
  double peak;
  int64_t warmup;
  int64_t total;
  std::string decay;                      // one of the above
  double floor;                           // the least after warm-up, as a fraction of peak
  int64_t cooldown = 0;                   // updates at the end; 0: a fifth of the total, one at least
  std::string cooldown_shape = "linear";  // or "cosine", "sqrt"

  double at(int64_t update) const;
};

}  // namespace gyre
