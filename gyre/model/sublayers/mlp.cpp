#include "gyre/model/sublayers/mlp.h"

namespace gyre {
namespace {

LinearOptions in_options(const MlpOptions& options) {
  LinearOptions linear;
  linear.out = options.hidden;
  linear.in = options.width;
  linear.bias = options.bias;
  linear.rotate = true;
  return linear;
}

LinearOptions out_options(const MlpOptions& options) {
  LinearOptions linear;
  linear.out = options.width;
  linear.in = options.hidden;
  linear.bias = options.bias;
  linear.deviation = options.out_deviation;
  linear.rotate = true;
  return linear;
}

}  // namespace

Mlp::Mlp(ParameterList& parameters, const std::string& name, const MlpOptions& options)
    : options_(options),
      in_(parameters, name + ".in", in_options(options)),
      out_(parameters, name + ".out", out_options(options)) {}

at::Tensor Mlp::forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context, Kept& kept) const {
  kept.hidden = in_.forward(weights, x, context, kept.in);
  return out_.forward(weights, activate(kept.hidden, options_.activation), context, kept.out);
}

at::Tensor Mlp::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  const at::Tensor grad_activated = out_.backward_input(weights, grad, kept.out);
  const at::Tensor grad_hidden = activate_backward(grad_activated, kept.hidden, options_.activation);
  kept.hidden.reset();
  return in_.backward_input(weights, grad_hidden, kept.in);
}

void Mlp::backward_weights(Kept& kept, std::span<at::Tensor> gradients) const {
  in_.backward_weights(kept.in, gradients);
  out_.backward_weights(kept.out, gradients);
}

double Mlp::kept_bytes(const MicrobatchShape& shape) const {
  return in_.kept_bytes(shape) + shape.tokens() * static_cast<double>(options_.hidden) * shape.element_bytes +
         out_.kept_bytes(shape);
}

}  // namespace gyre
