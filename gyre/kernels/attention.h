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

// softmax(q k^T / sqrt(size)) v per head: (batch, context, query heads * size); causal: a position sees itself and
// those before it. Goes by blocks of queries, so that no more than a block's rows of scores are there at once, and what
// a causal block does not see is not computed.
at::Tensor attention(const HeadTensors& of, const AttentionHeads& heads, bool causal);
// grad: by the output. Computes the probabilities of each block again: nothing of the size of context x context is
// kept.
HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads, bool causal);

namespace portable {
at::Tensor attention(const HeadTensors& of, const AttentionHeads& heads, bool causal);
HeadTensors attention_backward(const at::Tensor& grad, const HeadTensors& of, const AttentionHeads& heads, bool causal);
}  // namespace portable

}  // namespace gyre
