#include "gyre/runtime/weight_forecast.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gyre {

WeightForecast::WeightForecast(const ForecastOptions& options) : options_(options) {}

void WeightForecast::observe(const at::Tensor& masters) {
  if (!previous_.defined()) {
    previous_ = at::empty_like(masters);
    step_ = at::zeros_like(masters);
  }
  if (!begun_) {
    step_.zero_();
    stepped_ = false;
  } else {
    const double kept = forward() ? 0 : std::pow(options_.discrepancy, 1.0 / static_cast<double>(options_.steps));
    step_.mul_(kept).add_(masters - previous_, 1 - kept);
    stepped_ = true;
  }
  previous_.copy_(masters);
  begun_ = true;
}

void WeightForecast::write(const at::Tensor& masters, const at::Tensor& out) const {
  if (!stepped_ || !begun_) {
    out.copy_(masters);
    return;
  }
  const auto steps = static_cast<double>(options_.steps);
  out.copy_(masters.add(step_, forward() ? steps : -steps));
}

}  // namespace gyre
