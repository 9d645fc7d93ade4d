#include "gyre/optim/clipping.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gyre/kernels/cpu_math.h"

namespace gyre {
namespace {

// Sixteen partial sums by position, so that the compiler may use vectors without changing the order of additions.
GYRE_CPU_KERNEL double sum_of_squares(const float* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<double, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) sums[lane] += double{values[i]} * values[i];
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

bool plain(const at::Tensor& t) {
  return t.device().is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous();
}

}  // namespace

at::Tensor squared_norms(std::span<const at::Tensor> gradients) {
  const bool on_host = std::all_of(gradients.begin(), gradients.end(), plain);
  if (!on_host) {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& gradient : gradients) norms.push_back(gradient.to(at::kDouble).square().sum());
    return at::stack(norms);
  }
  at::Tensor norms = at::empty({static_cast<int64_t>(gradients.size())}, at::kDouble);
  auto* out = norms.data_ptr<double>();
  for (const at::Tensor& gradient : gradients) *out++ = sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
  return norms;
}

at::Tensor whole_norm(std::span<const at::Tensor> squared_norms) {
  if (!squared_norms[0].device().is_cpu()) {
    return at::cat(std::vector<at::Tensor>(squared_norms.begin(), squared_norms.end())).sum().sqrt();
  }
  double total = 0;
  for (const at::Tensor& norms : squared_norms) {
    const auto* values = norms.data_ptr<double>();
    for (int64_t i = 0; i < norms.numel(); ++i) total += values[i];
  }
  return at::scalar_tensor(std::sqrt(total), at::kDouble);
}

void clip(std::span<const at::Tensor> gradients, const at::Tensor& norm, double most) {
  if (norm.device().is_cpu()) {  // what is at hand saves a pass over the gradients where they are short enough
    const double length = *norm.data_ptr<double>();
    const double factor = length <= most ? 1.0 : most / (length + 1e-6);
    if (!(factor < 1)) return;
    for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
    return;
  }
  const at::Tensor factor = at::full_like(norm, most).div_(norm + 1e-6).clamp_max_(1);
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

}  // namespace gyre
