#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/attention_softmax.h"
#include "gyre/tensors/profile_scope.h"

namespace gyre {
namespace {

// (batch, context, heads * size) -> (batch * heads, context, size)
at::Tensor by_head(const at::Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), context = x.size(1), size = x.size(2) / heads;
  return x.view({batch, context, heads, size}).transpose(1, 2).reshape({batch * heads, context, size});
}

// And back: a view.
at::Tensor by_position(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0) / heads, heads, x.size(1), x.size(2)}).transpose(1, 2);
}

// The rows of all heads that share a key and value stand below each other, so that one product serves them:
// (batch * query heads, context, n) -> (batch * key-value heads, query / key_value * context, n).
at::Tensor grouped(const at::Tensor& x, const AttentionHeads& heads) {
  const int64_t group = heads.query / heads.key_value;
  return x.reshape({x.size(0) / group, group * x.size(1), x.size(2)});
}

double scale_of(const HeadTensors& of) {
  return 1.0 / std::sqrt(static_cast<double>(of.query.size(2)));
}

}  // namespace

HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads) {
  const ProfileScope scope("gyre::attention");
  const int64_t size = qkv.size(2) / (heads.query + 2 * heads.key_value);
  const int64_t queries = heads.query * size, keys = heads.key_value * size;
  return {by_head(qkv.narrow(2, 0, queries), heads.query), by_head(qkv.narrow(2, queries, keys), heads.key_value),
          by_head(qkv.narrow(2, queries + keys, keys), heads.key_value)};
}

at::Tensor merge_heads(const HeadTensors& grad, const AttentionHeads& heads) {
  const ProfileScope scope("gyre::attention");
  const int64_t batch = grad.query.size(0) / heads.query, context = grad.query.size(1), size = grad.query.size(2);
  at::Tensor result = at::empty({batch, context, heads.query + 2 * heads.key_value, size}, grad.query.options());
  result.narrow(2, 0, heads.query).copy_(by_position(grad.query, heads.query));
  result.narrow(2, heads.query, heads.key_value).copy_(by_position(grad.key, heads.key_value));
  result.narrow(2, heads.query + heads.key_value, heads.key_value).copy_(by_position(grad.value, heads.key_value));
  return result.view({batch, context, -1});
}

AttentionResult attention(const HeadTensors& of, const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  const int64_t batch = of.query.size(0) / heads.query, context = of.query.size(1), size = of.query.size(2);
  AttentionResult result;
  result.probabilities =
      at::bmm(grouped(of.query, heads), of.key.transpose(1, 2)).view({batch * heads.query, context, context});
  attention_softmax_in_place(result.probabilities, scale_of(of), causal);
  const at::Tensor output =
      at::bmm(grouped(result.probabilities, heads), of.value).view({batch * heads.query, context, size});
  result.output = by_position(output, heads.query).reshape({batch, context, heads.query * size});
  return result;
}

HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const at::Tensor& probabilities,
                               const AttentionHeads& heads, bool causal) {
  const ProfileScope scope("gyre::attention");
  const at::Tensor grad_output = grouped(by_head(grad, heads.query), heads);
  at::Tensor grad_scores = at::bmm(grad_output, of.value.transpose(1, 2)).view(probabilities.sizes());
  attention_softmax_backward_in_place(grad_scores, probabilities, scale_of(of), causal);
  const at::Tensor scores = grouped(grad_scores, heads);
  return {at::bmm(scores, of.key).view(of.query.sizes()), at::bmm(scores.transpose(1, 2), grouped(of.query, heads)),
          at::bmm(grouped(probabilities, heads).transpose(1, 2), grad_output)};
}

}  // namespace gyre
