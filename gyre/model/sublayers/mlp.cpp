#include "gyre/model/sublayers/mlp.h"

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
  return out_.forward(weights, activated, context, kept.out);
}

at::Tensor Mlp::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  const at::Tensor grad_activated = out_.backward_input(weights, grad, kept.out);
  const at::Tensor hidden = std::exchange(kept.hidden, {});
  const at::Tensor grad_hidden = options_.gated ? gated_activate_backward(grad_activated, hidden, options_.activation)
                                                : activate_backward(grad_activated, hidden, options_.activation);
  return in_.backward_input(weights, grad_hidden, kept.in);
}

void Mlp::backward_weights(Kept& kept, std::span<at::Tensor> gradients) const {
  in_.backward_weights(kept.in, gradients);
  out_.backward_weights(kept.out, gradients);
}

double Mlp::kept_bytes(const MicrobatchShape& shape) const {
  return in_.kept_bytes(shape) +
         shape.tokens() * layers() * static_cast<double>(options_.hidden) * shape.element_bytes +
         out_.kept_bytes(shape);
}

}  // namespace gyre
