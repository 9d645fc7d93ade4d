#include "gyre/model/sublayers/mlp.h"

#include <algorithm>
#include <utility>

namespace gyre {
namespace {

LinearOptions in_options(const MlpOptions& options) {
  LinearOptions linear;
  linear.out = options.gated ? 2 * options.hidden : options.hidden;
  linear.in = options.width;
  linear.bias = options.bias;
  linear.rotate = true;
  if (options.gated) linear.row_blocks = {options.hidden, options.hidden};
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
  const at::Tensor activated =
      options_.gated ? gated_activate(kept.hidden, options_.activation) : activate(kept.hidden, options_.activation);
  at::Tensor y = out_.forward(weights, activated, context, kept.out);
  kept.out.input.reset();  // the backward recomputes it from `hidden`, so it is not saved
  return y;
}

at::Tensor Mlp::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  const at::Tensor grad_activated = out_.backward_input(weights, grad, kept.out);
  const at::Tensor hidden = std::exchange(kept.hidden, {});
  ActivationBackward activation = options_.gated ? gated_activate_backward(grad_activated, hidden, options_.activation)
                                                 : activate_backward(grad_activated, hidden, options_.activation);
  kept.out.input = std::move(activation.output);
  return in_.backward_input(weights, activation.grad, kept.in);
}

void Mlp::backward_weights(Kept& kept, const GradientSums& gradients) const {
  in_.backward_weights(kept.in, gradients);
  out_.backward_weights(kept.out, gradients);
}

double Mlp::kept_bytes(const MicrobatchShape& shape) const {
  return in_.kept_bytes(shape) +
         shape.tokens() * hidden_layers() * static_cast<double>(options_.hidden) * shape.element_bytes;
}

// In the input half: the activation's output, its gradient and that of its input, and the gradients of the MLP's output
// and input.
double Mlp::passing_bytes(const MicrobatchShape& shape) const {
  const auto hidden = static_cast<double>(options_.hidden), width = static_cast<double>(options_.width);
  const double of_inputs = shape.tokens() * ((2 + hidden_layers()) * hidden + 2 * width) * shape.element_bytes;
  const double wide = std::max(in_.wide_bytes(shape), out_.wide_bytes(shape));
  return std::max(of_inputs + wide, weights_passing_bytes(shape));
}

double Mlp::weights_passing_bytes(const MicrobatchShape& shape) const {
  const double grad_input = shape.tokens() * static_cast<double>(options_.width) * shape.element_bytes;
  return split_bytes(shape) + grad_input + std::max(in_.product_bytes(shape), out_.product_bytes(shape));
}

// The activation's output and the gradient of the MLP's output. That of its input takes the hidden layer's place.
double Mlp::split_bytes(const MicrobatchShape& shape) const {
  return shape.tokens() * static_cast<double>(options_.hidden + options_.width) * shape.element_bytes;
}

}  // namespace gyre
