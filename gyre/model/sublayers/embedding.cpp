#include "gyre/model/sublayers/embedding.h"

#include <ATen/ATen.h>

#include "gyre/kernels/embedding.h"
#include "gyre/model/sublayers/decoding.h"

namespace gyre {

Embedding::Embedding(ParameterList& parameters, const std::string& name, int64_t vocabulary, int64_t width)
    : table_(parameters.add_table(name + ".weight", vocabulary, width)) {}

at::Tensor Embedding::forward(const WeightView& weights, const at::Tensor& tokens, const LayerContext&,
                              Kept& kept) const {
  kept.tokens = tokens;
  return embed(weights[table_], tokens);
}

at::Tensor Embedding::backward_input(const WeightView&, const at::Tensor& grad, Kept& kept) const {
  kept.grad_output = grad;
  return {};
}

void Embedding::backward_weights(Kept& kept, const GradientSums& gradients) const {
  embed_backward(kept.grad_output, kept.tokens, gradients.sum(table_));
  kept = {};
}

LearnedPositions::LearnedPositions(ParameterList& parameters, const std::string& name, int64_t context, int64_t width)
    : table_(parameters.add_table(name + ".weight", context, width)) {}

void LearnedPositions::add_to(at::Tensor& x, const WeightView& weights, const LayerContext& context) const {
  const int64_t first = context.decoding == nullptr ? 0 : context.decoding->position;
  x.add_(weights[table_].narrow(0, first, x.size(1)));
}

void LearnedPositions::backward_weights(Kept& kept, const GradientSums& gradients) const {
  const at::Tensor& grad = kept.grad_output;
  at::Tensor& table = gradients.sum(table_);
  table.narrow(0, 0, grad.size(1)).add_(at::sum(grad, {0}, /*keepdim=*/false, table.scalar_type()));
  kept = {};
}

}  // namespace gyre
