// Multi-head attention over a fused projection (Vaswani et al., 2017, section 3.2). Several heads of queries may share
// one of keys and values (grouped queries; Ainslie et al., 2023).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct AttentionHeads {
  int64_t query = 1, key_value = 1;  // the second divides the first
  bool operator==(const AttentionHeads&) const = default;
};

// Queries, keys and values by head.
struct HeadTensors {
  at::Tensor query;       // (batch * query heads, context, size)
  at::Tensor key, value;  // (batch * key-value heads, context, size)
};

// qkv: (batch, context, (query + 2 key_value) * size): all heads' queries before their keys before their values.
HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads);
// The gradient by qkv.
at::Tensor merge_heads(const HeadTensors& grad, const AttentionHeads& heads);

// Of rows of scores: a probability is factor * 2^(log2(e) * scale * score - shift). fp32, or fp64 with scores in fp64.
struct SoftmaxRows {
  at::Tensor shift, factor;  // (n, rows)
};

// What comes out of attention, and what its backward reads beside its inputs.
struct Attended {
  at::Tensor output;  // (batch, context, query heads * size)
  SoftmaxRows rows;   // of (batch * query heads, context)
};

// softmax(q k^T / sqrt(size)) v per head; causal: a position sees itself and those before it. Goes by blocks of
// queries, so that no more than a block's rows of scores are there at once, and what a causal block does not see is not
// computed.
Attended attention(const HeadTensors& of, const AttentionHeads& heads, bool causal);
// grad: by the output. Computes the probabilities of each block again: nothing of the size of context x context is
// kept. What a row of them, times its gradients, sums to is what a position's output sums to, times its own gradient
// (Dao et al., 2022, FlashAttention, appendix B.2).
HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended,
                               const AttentionHeads& heads, bool causal);

namespace portable {
Attended attention(const HeadTensors& of, const AttentionHeads& heads, bool causal);
HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended,
                               const AttentionHeads& heads, bool causal);
}  // namespace portable

}  // namespace gyre
