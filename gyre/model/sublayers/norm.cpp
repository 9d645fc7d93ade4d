#include "gyre/model/sublayers/norm.h"

#include <utility>

#include "gyre/kernels/normalization.h"

namespace gyre {

Norm::Norm(ParameterList& parameters, const std::string& name, const NormOptions& options)
    : options_(options), weight_(parameters.add_vector(name + ".weight", options.width, Initialization::Kind::Ones)) {
  if (options.bias) bias_ = parameters.add_vector(name + ".bias", options.width, Initialization::Kind::Zeros);
}

at::Tensor Norm::forward(const WeightView& weights, const at::Tensor& x, const LayerContext&, Kept& kept) const {
  auto norm = layer_norm(x, weights[weight_], bias(weights), options_.epsilon);
  kept.input = x;
  kept.mean = std::move(norm.mean);
  kept.rstd = std::move(norm.rstd);
  return norm.output;
}

at::Tensor Norm::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  auto norm = layer_norm_backward(grad, kept.input, kept.mean, kept.rstd, weights[weight_], bias(weights));
  kept = {};
  kept.grad_weight = std::move(norm.weight);
  kept.grad_bias = std::move(norm.bias);
  return norm.input;
}

void Norm::backward_weights(Kept& kept, std::span<at::Tensor> gradients) const {
  gradients[weight_].add_(kept.grad_weight);
  if (bias_) gradients[*bias_].add_(kept.grad_bias);
  kept = {};
}

}  // namespace gyre
