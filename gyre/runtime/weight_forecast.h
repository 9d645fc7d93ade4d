// Weights at an earlier or later update, extrapolated from the steps taken. Forecasts are part of publishing a version,
// so layers, links and stashes do not know about them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gyre/schedule/schedule.h"

namespace gyre {

// The settings of one stage's forecasts.
struct ForecastOptions {
  WeightPolicy policy = WeightPolicy::Stash;  // Predict or Corrected; others forecast nothing
  int64_t steps = 0;       // updates ahead (Predict: the stage's delay) or back (Corrected: its mismatch)
  double discrepancy = 0;  // Corrected: D
};

// The steps of a filled pipeline mean nothing to an empty one, so every segment starts without a forecast.
class WeightForecast {
 public:
  WeightForecast() = default;
  explicit WeightForecast(const ForecastOptions& options);

  bool forward() const { return options_.policy == WeightPolicy::Predict && options_.steps > 0; }
  bool backward() const { return options_.policy == WeightPolicy::Corrected && options_.steps > 0; }
  bool any() const { return forward() || backward(); }

  void restart() { begun_ = false; }
  // Call at the start of a segment and after each update. masters: fp32, flat.
  void observe(const at::Tensor& masters);
  // Writes the forecast to `out`, in its type. Before the second observe() of a segment this is `masters`.
  void write(const at::Tensor& masters, const at::Tensor& out) const;

 private:
  ForecastOptions options_;
  bool begun_ = false;    // previous_ is the last version of this segment
  bool stepped_ = false;  // step_ is a step of this segment
  at::Tensor previous_, step_;
};

// Each in one pass. step <- kept step + (1 - kept) (masters - previous); previous <- masters.
void observe_step(const at::Tensor& step, const at::Tensor& previous, const at::Tensor& masters, double kept);
// out <- masters + steps step, in its type.
void write_forecast(const at::Tensor& masters, const at::Tensor& step, double steps, const at::Tensor& out);

namespace portable {
void observe_step(const at::Tensor& step, const at::Tensor& previous, const at::Tensor& masters, double kept);
void write_forecast(const at::Tensor& masters, const at::Tensor& step, double steps, const at::Tensor& out);
}  // namespace portable

}  // namespace gyre
