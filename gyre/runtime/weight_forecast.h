// Weights at another time than now, guessed from the steps that were taken. It is a property of how a version is
// published, so layers, links and stashes know nothing of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gyre/schedule/schedule.h"

namespace gyre {

// What a stage's forecasts are made of.
struct ForecastOptions {
  WeightPolicy policy = WeightPolicy::Stash;  // Predict or Corrected; others forecast nothing
  int64_t steps = 0;       // updates ahead (Predict: the stage's delay) or back (Corrected: its mismatch)
  double discrepancy = 0;  // Corrected: D
};

// Predict (XPipe, SpecTrain): W + s (W_t - W_{t-1}). The last step of Adam is lr m / (sqrt(v) + eps), which is what the
// papers move along; taking the step itself serves every optimizer.
// Corrected (PipeMare, section 3.2): delta <- g delta + (1 - g)(W_t - W_{t-1}), g = D^(1/s); W - s delta.
// The steps of a filled pipeline mean nothing to an empty one, so a forecast begins anew with every segment.
class WeightForecast {
 public:
  WeightForecast() = default;
  explicit WeightForecast(const ForecastOptions& options);

  bool forward() const { return options_.policy == WeightPolicy::Predict && options_.steps > 0; }
  bool backward() const { return options_.policy == WeightPolicy::Corrected && options_.steps > 0; }
  bool any() const { return forward() || backward(); }

  void restart() { begun_ = false; }
  // After each update. masters: fp32, flat.
  void observe(const at::Tensor& masters);
  // Writes the forecast, in the type of `out`; `masters` themselves before the second observation.
  void write(const at::Tensor& masters, const at::Tensor& out) const;

 private:
  ForecastOptions options_;
  bool begun_ = false;    // previous_ is the last version of this segment
  bool stepped_ = false;  // step_ is a step of this segment
  at::Tensor previous_, step_;
};

}  // namespace gyre
