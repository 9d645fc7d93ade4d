#include "gyre/model/sublayers/attention.h"

#include <utility>

#include "gyre/kernels/attention.h"

namespace gyre {
namespace {

LinearOptions qkv_options(const AttentionOptions& options) {
  LinearOptions linear;
  linear.out = 3 * options.width;
  linear.in = options.width;
  linear.bias = options.bias;
  linear.rotate = true;
  linear.row_blocks = 3;
  return linear;
}

LinearOptions projection_options(const AttentionOptions& options) {
  LinearOptions linear;
  linear.out = linear.in = options.width;
  linear.bias = options.bias;
  linear.deviation = options.projection_deviation;
  linear.rotate = true;
  return linear;
}

}  // namespace

Attention::Attention(ParameterList& parameters, const std::string& name, const AttentionOptions& options)
    : options_(options),
      qkv_(parameters, name + ".qkv", qkv_options(options)),
      projection_(parameters, name + ".projection", projection_options(options)) {}

at::Tensor Attention::forward(const WeightView& weights, const at::Tensor& x, const LayerContext& context,
                              Kept& kept) const {
  auto attended = attention(qkv_.forward(weights, x, context, kept.qkv), options_.heads, options_.causal);
  kept.heads = std::move(attended.heads);
  kept.probabilities = std::move(attended.probabilities);
  return projection_.forward(weights, attended.output, context, kept.projection);
}

at::Tensor Attention::backward_input(const WeightView& weights, const at::Tensor& grad, Kept& kept) const {
  const at::Tensor grad_attended = projection_.backward_input(weights, grad, kept.projection);
  const at::Tensor grad_qkv = attention_backward(grad_attended, kept.heads, kept.probabilities, options_.causal);
  kept.heads.reset();
  kept.probabilities.reset();
  return qkv_.backward_input(weights, grad_qkv, kept.qkv);
}

void Attention::backward_weights(Kept& kept, std::span<at::Tensor> gradients) const {
  qkv_.backward_weights(kept.qkv, gradients);
  projection_.backward_weights(kept.projection, gradients);
}

double Attention::cost() const {
  return qkv_.cost() + projection_.cost() +
         2 * static_cast<double>(options_.width) * static_cast<double>(options_.context);
}

double Attention::kept_bytes(const MicrobatchShape& shape) const {
  const double of_token = 3 * static_cast<double>(options_.width) + static_cast<double>(options_.heads) * shape.context;
  return qkv_.kept_bytes(shape) + shape.tokens() * of_token * shape.element_bytes + projection_.kept_bytes(shape);
}

}  // namespace gyre
