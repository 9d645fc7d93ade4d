#include "gyre/optim/clipping.h"

#include <ATen/ATen.h>

#include <array>

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

double squared_norm(const at::Tensor& gradient) {
  if (gradient.device().is_cpu() && gradient.scalar_type() == at::kFloat && gradient.is_contiguous()) {
    return sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
  }
  return at::sum(gradient.to(at::kDouble).square()).item<double>();
}

}  // namespace

std::vector<double> squared_norms(std::span<const at::Tensor> gradients) {
  std::vector<double> norms;
  norms.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) norms.push_back(squared_norm(gradient));
  return norms;
}

double combine(std::span<const double> squared_norms) {
  double total = 0;
  for (double squared : squared_norms) total += squared;
  return total;
}

double clip_factor(double norm, double most) {
  return norm <= most ? 1.0 : most / (norm + 1e-6);
}

void scale(std::span<const at::Tensor> gradients, double factor) {
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

}  // namespace gyre
