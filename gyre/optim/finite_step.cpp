#include "gyre/optim/finite_step.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

namespace gyre {
namespace {

// Products with 0 or 1 choose between finite values, on every device. fmax and fmin pass over what is no number.
at::Tensor bounded(const at::Tensor& x) {
  const at::Tensor most = at::full({}, std::numeric_limits<float>::max(), x.options());
  return at::fmin(at::fmax(x, -most), most);
}

}  // namespace

void portable::step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights,
                              std::span<const at::Tensor> gradients, const at::Tensor& norm,
                              const UpdateContext& context) {
  const at::Tensor kept = (norm <= std::numeric_limits<double>::max()).to(at::kFloat), undone = 1 - kept;
  for (const at::Tensor& gradient : gradients) gradient.copy_(bounded(gradient).mul_(kept));
  std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // and what it was
  for (const at::Tensor& weight : weights) changed.emplace_back(weight, weight.clone());
  for (const auto& [name, tensor] : optimizer.state()) changed.emplace_back(tensor, tensor.clone());
  optimizer.step(weights, gradients, context);
  for (const auto& [now, before] : changed) now.mul_(kept).add_(before.mul_(undone));
}

bool step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context, std::span<const at::Tensor> rounded) {
  if (!norm.is_cpu()) {
    portable::step_if_finite(optimizer, weights, gradients, norm, context);
    return false;
  }
  if (!std::isfinite(*norm.data_ptr<double>())) return false;
  if (rounded.empty()) {
    optimizer.step(weights, gradients, context);
  } else {
    optimizer.step_and_round(weights, gradients, rounded, context);
  }
  return !rounded.empty();
}

}  // namespace gyre
