#include "gyre/optim/clipping.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gyre/kernels/cpu_math.h"

namespace gyre {
namespace {

constexpr double kEpsilon = 1e-6;  // as torch.nn.utils.clip_grad_norm_

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

}  // namespace

at::Tensor portable::squared_norms(std::span<const at::Tensor> gradients) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) norms.push_back(gradient.to(at::kDouble).square().sum());
  return at::stack(norms);
}

at::Tensor portable::whole_norm(std::span<const at::Tensor> squared_norms) {
  return at::cat(std::vector<at::Tensor>(squared_norms.begin(), squared_norms.end())).sum().sqrt();
}

void portable::clip(std::span<const at::Tensor> gradients, const at::Tensor& norm, double max_norm) {
  const at::Tensor is_long = (norm > max_norm).to(norm.scalar_type());
  const at::Tensor factor = at::full_like(norm, max_norm).div_(norm + kEpsilon).mul_(is_long).add_(1 - is_long);
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

at::Tensor squared_norms(std::span<const at::Tensor> gradients) {
  const bool all_plain =
      std::all_of(gradients.begin(), gradients.end(), [](const at::Tensor& t) { return cpu::is_plain(t, at::kFloat); });
  if (!all_plain) return portable::squared_norms(gradients);
  at::Tensor norms = at::empty({static_cast<int64_t>(gradients.size())}, at::kDouble);
  auto* out = norms.data_ptr<double>();
  for (const at::Tensor& gradient : gradients) *out++ = sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
  return norms;
}

at::Tensor whole_norm(std::span<const at::Tensor> squared_norms) {
  if (!squared_norms[0].is_cpu()) return portable::whole_norm(squared_norms);
  double total = 0;
  for (const at::Tensor& norms : squared_norms) {
    const auto* values = norms.data_ptr<double>();
    for (int64_t i = 0; i < norms.numel(); ++i) total += values[i];
  }
  return at::scalar_tensor(std::sqrt(total), at::kDouble);
}

double clip_factor(const at::Tensor& norm, double max_norm) {
  const double length = *norm.data_ptr<double>();
  return length > max_norm ? max_norm / (length + kEpsilon) : 1;
}

void clip(std::span<const at::Tensor> gradients, const at::Tensor& norm, double max_norm) {
  if (!norm.is_cpu()) return portable::clip(gradients, norm, max_norm);
  // What is at hand saves a pass over the gradients where they are short enough.
  const double factor = clip_factor(norm, max_norm);
  if (factor == 1) return;
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

}  // namespace gyre
