#include "gyre/kernels/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gyre/kernels/attention_softmax.h"

namespace gyre {
namespace {

// (batch, context, width) -> (batch * heads, context, width / heads)
at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), context = x.size(1), size = x.size(2) / heads;
  return x.view({batch, context, heads, size}).transpose(1, 2).reshape({batch * heads, context, size});
}

}  // namespace

AttentionResult attention(const at::Tensor& qkv, int64_t heads, bool causal) {
  const int64_t batch = qkv.size(0), context = qkv.size(1), width = qkv.size(2) / 3, size = width / heads;
  // (batch, context, 3, heads, size) -> (3, batch, heads, context, size)
  AttentionResult result;
  result.heads =
      qkv.view({batch, context, 3, heads, size}).permute({2, 0, 3, 1, 4}).reshape({3, batch * heads, context, size});
  const at::Tensor q = result.heads[0], k = result.heads[1], v = result.heads[2];
  result.probabilities = at::bmm(q, k.transpose(1, 2));
  attention_softmax_in_place(result.probabilities, 1.0 / std::sqrt(static_cast<double>(size)), causal);
  result.output = at::bmm(result.probabilities, v)
                      .view({batch, heads, context, size})
                      .transpose(1, 2)
                      .reshape({batch, context, width});
  return result;
}

at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& heads, const at::Tensor& probabilities,
                              bool causal) {
  const int64_t batch = grad.size(0), context = grad.size(1), size = heads.size(3);
  const int64_t head_count = grad.size(2) / size;
  const at::Tensor q = heads[0], k = heads[1], v = heads[2];
  const at::Tensor grad_heads = split_heads(grad, head_count);
  at::Tensor grad_scores = at::bmm(grad_heads, v.transpose(1, 2));
  attention_softmax_backward_in_place(grad_scores, probabilities, 1.0 / std::sqrt(static_cast<double>(size)), causal);
  at::Tensor grad_qkv = at::empty({3, batch * head_count, context, size}, grad.options());
  at::Tensor grad_q = grad_qkv[0], grad_k = grad_qkv[1], grad_v = grad_qkv[2];
  at::bmm_out(grad_q, grad_scores, k);
  at::bmm_out(grad_k, grad_scores.transpose(1, 2), q);
  at::bmm_out(grad_v, probabilities.transpose(1, 2), grad_heads);
  return grad_qkv.view({3, batch, head_count, context, size}).permute({1, 3, 0, 2, 4}).reshape({batch, context, -1});
}

}  // namespace gyre
