#include "gyre/runtime/weight_forecast.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"

namespace gyre {
namespace {

// step <- kept step + (1 - kept) (now - previous); previous <- now.
GYRE_CPU_KERNEL void observe_loop(const float* __restrict now, float* __restrict previous, float* __restrict step,
                                  int64_t count, float kept, float rest) {
  for (int64_t i = 0; i < count; ++i) {
    step[i] = rest * (now[i] - previous[i]) + kept * step[i];
    previous[i] = now[i];
  }
}

template <typename Out>
GYRE_INLINE void write_elements(const float* __restrict now, const float* __restrict step, Out* __restrict out,
                                int64_t count, float steps) {
  for (int64_t i = 0; i < count; ++i) cpu::store(out + i, now[i] + steps * step[i]);
}
GYRE_CPU_KERNEL void write_loop(const float* now, const float* step, float* out, int64_t count, float steps) {
  write_elements(now, step, out, count, steps);
}
GYRE_CPU_KERNEL void write_loop(const float* now, const float* step, c10::BFloat16* out, int64_t count, float steps) {
  write_elements(now, step, out, count, steps);
}

template <typename Out>
void write_sums(const at::Tensor& masters, const at::Tensor& step, const at::Tensor& out, double steps) {
  const float* const now = masters.data_ptr<float>();
  const float* const by = step.data_ptr<float>();
  Out* const to = out.data_ptr<Out>();
  cpu::for_elements(masters.numel(), [&](int64_t begin, int64_t end) {
    write_loop(now + begin, by + begin, to + begin, end - begin, static_cast<float>(steps));
  });
}

}  // namespace

void portable::observe_step(const at::Tensor& step, const at::Tensor& previous, const at::Tensor& masters,
                            double kept) {
  step.mul_(kept).sub_(previous.sub_(masters), 1 - kept);
  previous.copy_(masters);
}

void portable::write_forecast(const at::Tensor& masters, const at::Tensor& step, double steps, const at::Tensor& out) {
  at::Tensor sum = out;
  at::add_out(sum, masters, step, steps);
}

void observe_step(const at::Tensor& step, const at::Tensor& previous, const at::Tensor& masters, double kept) {
  if (!cpu::is_plain(masters, at::kFloat)) return portable::observe_step(step, previous, masters, kept);
  const float* const now = masters.data_ptr<float>();
  float* const before = previous.data_ptr<float>();
  float* const to = step.data_ptr<float>();
  cpu::for_elements(masters.numel(), [&](int64_t begin, int64_t end) {
    observe_loop(now + begin, before + begin, to + begin, end - begin, static_cast<float>(kept),
                 static_cast<float>(1 - kept));
  });
}

void write_forecast(const at::Tensor& masters, const at::Tensor& step, double steps, const at::Tensor& out) {
  if (cpu::is_plain(masters, at::kFloat) && cpu::is_plain(out, at::kFloat)) {
    write_sums<float>(masters, step, out, steps);
  } else if (cpu::is_plain(masters, at::kFloat) && cpu::is_plain(out, at::kBFloat16)) {
    write_sums<c10::BFloat16>(masters, step, out, steps);
  } else {
    portable::write_forecast(masters, step, steps, out);
  }
}

WeightForecast::WeightForecast(const ForecastOptions& options) : options_(options) {}

void WeightForecast::observe(const at::Tensor& masters) {
  if (!previous_.defined()) {
    previous_ = at::empty_like(masters);
    step_ = at::zeros_like(masters);
  }
  stepped_ = begun_;
  if (stepped_) {
    const double kept = forward() ? 0 : std::pow(options_.discrepancy, 1.0 / static_cast<double>(options_.steps));
    observe_step(step_, previous_, masters, kept);
  } else {
    step_.zero_();
    previous_.copy_(masters);
  }
  begun_ = true;
}

void WeightForecast::write(const at::Tensor& masters, const at::Tensor& out) const {
  if (!stepped_ || !begun_) {
    out.copy_(masters);
    return;
  }
  const auto steps = static_cast<double>(options_.steps);
  write_forecast(masters, step_, forward() ? steps : -steps, out);
}

}  // namespace gyre
