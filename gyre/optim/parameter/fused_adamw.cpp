#include "gyre/optim/parameter/fused_adamw.h"

#include <ATen/ATen.h>

#include <stdexcept>

#include "gyre/tensors/device.h"

namespace gyre {
namespace {

// libtorch's function is found by its arguments' namespace, so that a version without it is no error.
template <typename Tensor>
constexpr bool kIsThere = requires(const std::vector<Tensor>& all, const Tensor& one) {
  _fused_adamw_(all, all, all, all, {}, all, 0.0, 0.0, 0.0, 0.0, 0.0, false, false, one);
};

template <typename Tensor>
void step(const std::vector<Tensor>& weights, const AdamwTensors& t, double weight_decay, const AdamSettings& config,
          const UpdateContext& context) {
  if constexpr (!kIsThere<Tensor>) {
    throw std::logic_error("this libtorch has no _fused_adamw_");
  } else {
    const auto number = [&](double value) { return at::full({}, value, weights[0].options()); };
    const std::vector<Tensor> updates(weights.size(), number(static_cast<double>(context.update)));
    const auto make = [&](const auto&... divisor) {
      constexpr bool kAmsgrad = false, kMaximize = false;
      _fused_adamw_(weights, t.gradients, t.exp_avgs, t.exp_avg_sqs, {}, updates, context.learning_rate, config.beta1,
                    config.beta2, weight_decay, config.epsilon, kAmsgrad, kMaximize, divisor...);
    };
    // It divides gradients by a divisor as it reads them.
    context.gradient_factor == 1 ? make() : make(number(1 / context.gradient_factor));
  }
}

}  // namespace

bool FusedAdamw::is_there() {
  return kIsThere<at::Tensor>;
}

bool FusedAdamw::take(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg,
                      const at::Tensor& exp_avg_sq, double weight_decay) {
  if (!is_there() || !has_streams(weight.device()) || exp_avg.scalar_type() != at::kFloat) return false;
  if (!weight.is_contiguous() || !gradient.is_contiguous()) return false;  // it takes all with the same strides
  AdamwTensors& tensors = taken_[weight_decay];
  tensors.weights.push_back(weight);
  tensors.gradients.push_back(gradient);
  tensors.exp_avgs.push_back(exp_avg);
  tensors.exp_avg_sqs.push_back(exp_avg_sq);
  return true;
}

void FusedAdamw::make(const AdamSettings& config, const UpdateContext& context) {
  for (const auto& [weight_decay, tensors] : taken_) fused::adamw(tensors, weight_decay, config, context);
  taken_.clear();
}

void fused::adamw(const AdamwTensors& tensors, double weight_decay, const AdamSettings& config,
                  const UpdateContext& context) {
  step(tensors.weights, tensors, weight_decay, config, context);
}

}  // namespace gyre
