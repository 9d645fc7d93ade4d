#include "gyre/model/sublayers/norm.h"

#include <utility>

#include "gyre/kernels/layer_norm.h"
#include "gyre/kernels/rms_norm.h"

namespace gyre {

Norm::Norm(ParameterList& parameters, const std::string& name, const NormOptions& options)
    : options_(options), weight_(parameters.add_vector(name + ".weight", options.width, Initialization::Kind::Ones)) {
  if (options.kind == NormKind::LayerNorm && options.bias) {
    bias_ = parameters.add_vector(name + ".bias", options.width, Initialization::Kind::Zeros);
  }
}

at::Tensor Norm::forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context,
                         Kept& kept) const {
  kept.input = x;
  // Cloned if the backward may be given newer weights, since these may be overwritten by then.
  if (options_.recomputes_output && context.training && !context.keeps_weights) {
    kept.weight = weights[weight_].clone();
    if (bias_) kept.bias = weights[*bias_].clone();
  }
  if (options_.kind == NormKind::RmsNorm) {
    auto norm = rms_norm(x, weights[weight_], options_.epsilon);
    kept.rstd = std::move(norm.rstd);
    return norm.output;
  }
  auto norm = layer_norm(x, weights[weight_], bias_ ? weights[*bias_] : at::Tensor(), options_.epsilon);
  kept.mean = std::move(norm.mean);
  kept.rstd = std::move(norm.rstd);
  return norm.output;
}

at::Tensor Norm::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  Kept forward = std::exchange(kept, {});
  if (options_.recomputes_output) {
    if (!forward.weight.defined()) {
      forward.weight = weights[weight_];
      if (bias_) forward.bias = weights[*bias_];
    }
    kept.output = output(forward);
  }
  if (options_.kind == NormKind::RmsNorm) {
    auto norm = rms_norm_backward(grad, forward.input, forward.rstd, weights[weight_]);
    kept.grad_weight = std::move(norm.weight);
    return norm.input;
  }
  auto norm = layer_norm_backward(grad, forward.input, forward.mean, forward.rstd, weights[weight_]);
  kept.grad_weight = std::move(norm.weight);
  if (bias_) kept.grad_bias = std::move(norm.bias);
  return norm.input;
}

at::Tensor Norm::output(const Kept& forward) const {
  if (options_.kind == NormKind::RmsNorm) {
    return rms_norm_output(forward.input, forward.rstd, forward.weight);
  }
  return layer_norm_output(forward.input, forward.mean, forward.rstd, forward.weight, forward.bias);
}

void Norm::backward_weights(Kept& kept, const GradientSums& gradients) const {
  gradients.add(weight_, kept.grad_weight);
  if (bias_) gradients.add(*bias_, kept.grad_bias);
  kept = {};
}

double Norm::kept_bytes(const MicrobatchShape& shape) const {
  const double statistics = 4 * (options_.kind == NormKind::RmsNorm ? 1 : 2);  // bytes per token, fp32
  // Without the copies of weight and bias, which only some weight policies need: they are two tokens' bytes at most.
  return shape.tokens() * (static_cast<double>(options_.width) * shape.element_bytes + statistics);
}

}  // namespace gyre
