#include "gyre/optim/clipping.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gyre/kernels/cpu_math.h"
#include "gyre/kernels/parallel_for.h"

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

// Of each tensor, 0-dim fp64. In newer versions of libtorch one function does it for all of them, in a few kernels.
template <typename Tensor>
std::vector<at::Tensor> norms_of(std::span<const Tensor> tensors) {
  if constexpr (requires(const std::vector<Tensor>& all) { _foreach_norm(all, 2, at::kDouble); }) {
    return _foreach_norm(std::vector<Tensor>(tensors.begin(), tensors.end()), 2, at::kDouble);
  } else {
    std::vector<at::Tensor> norms;
    for (const Tensor& x : tensors) norms.push_back(at::linalg_vector_norm(x, 2, {}, /*keepdim=*/false, at::kDouble));
    return norms;
  }
}

}  // namespace

at::Tensor portable::squared_norms(std::span<const at::Tensor> gradients) {
  return at::stack(norms_of(gradients)).square_();
}

at::Tensor portable::whole_norm(std::span<const at::Tensor> squared_norms) {
  return at::cat(std::vector<at::Tensor>(squared_norms.begin(), squared_norms.end())).sum().sqrt();
}

at::Tensor squared_norms(std::span<const at::Tensor> gradients) {
  const bool all_plain =
      std::all_of(gradients.begin(), gradients.end(), [](const at::Tensor& t) { return cpu::is_plain(t, at::kFloat); });
  if (!all_plain) return portable::squared_norms(gradients);
  at::Tensor norms = at::empty({static_cast<int64_t>(gradients.size())}, at::kDouble);
  auto* const out = norms.data_ptr<double>();
  int64_t elements = 0;
  for (const at::Tensor& gradient : gradients) elements += gradient.numel();
  const auto count = static_cast<int64_t>(gradients.size());
  cpu::for_rows(count, elements / std::max<int64_t>(count, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const at::Tensor& gradient = gradients[static_cast<size_t>(i)];
      out[i] = sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
    }
  });
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

double clip_factor(double norm, double max_norm) {
  return norm > max_norm ? max_norm / (norm + kEpsilon) : 1;
}

void clip(std::span<const at::Tensor> gradients, double norm, double max_norm) {
  const double factor = clip_factor(norm, max_norm);
  if (factor == 1) return;
  for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
}

}  // namespace gyre
