#include "gyre/optim/finite_step.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace gyre {
namespace {

// Products with 0 or 1 choose between finite values, on every device. fmax and fmin pass over what is no number.
at::Tensor bounded(const at::Tensor& x) {
  const at::Tensor largest = at::full({}, std::numeric_limits<float>::max(), x.options());
  return at::fmin(at::fmax(x, -largest), largest);
}

// Of a number that is at hand.
bool is_finite(const at::Tensor& norm) {
  return std::isfinite(*norm.data_ptr<double>());
}

}  // namespace

void portable::step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights,
                              std::span<const at::Tensor> gradients, const at::Tensor& norm,
                              const UpdateContext& context) {
  const at::Tensor finite = (norm <= std::numeric_limits<double>::max()).to(at::kFloat), undone = 1 - finite;
  for (const at::Tensor& gradient : gradients) gradient.copy_(bounded(gradient).mul_(finite));
  std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // and what it was
  for (const at::Tensor& weight : weights) changed.emplace_back(weight, weight.clone());
  for (const auto& [name, tensor] : optimizer.state()) changed.emplace_back(tensor, tensor.clone());
  optimizer.step(weights, gradients, context);
  for (const auto& [now, before] : changed) now.mul_(finite).add_(before.mul_(undone));
}

void step_if_finite(Optimizer& optimizer, std::span<const at::Tensor> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context) {
  if (!norm.is_cpu()) {
    portable::step_if_finite(optimizer, weights, gradients, norm, context);
  } else if (is_finite(norm)) {
    optimizer.step(weights, gradients, context);
  } else {
    optimizer.skip(weights, context);
  }
}

bool step_if_finite(Optimizer& optimizer, std::span<const SplitWeight> weights, std::span<const at::Tensor> gradients,
                    const at::Tensor& norm, const UpdateContext& context) {
  if (norm.is_cpu() && is_finite(norm)) {
    optimizer.step_split(weights, gradients, context);
    return true;
  }
  std::vector<at::Tensor> whole;
  for (const SplitWeight& weight : weights) whole.push_back(joined(weight));
  if (norm.is_cpu()) {
    optimizer.skip(whole, context);
    return false;
  }
  portable::step_if_finite(optimizer, whole, gradients, norm, context);
  for (size_t i = 0; i < weights.size(); ++i) split(whole[i], weights[i]);
  return true;
}

}  // namespace gyre
