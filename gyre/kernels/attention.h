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

// Queries, keys and values by head. May be views, as split_heads makes them.
struct HeadTensors {
  at::Tensor query;       // (batch, query heads, context, size)
  at::Tensor key, value;  // (batch, key-value heads, context, size)
};

// (batch, context, heads * size) -> (batch, heads, context, size), a view.
at::Tensor heads_of(const at::Tensor& x, int64_t heads);
// qkv: (batch, context, (query + 2 key_value) * size): all heads' queries before their keys before their values. Views
// of it, so that what is written to them is written there.
HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads);

struct Attended {
  at::Tensor output;  // (batch, context, query heads * size)
  // (batch, query heads, context, 2), fp32: how each row's softmax was scaled, for its backward. Undefined: that finds
  // it anew.
  at::Tensor softmax_rows;
};

// softmax(q k^T / sqrt(size)) v per head; causal: a position sees itself and those before it. Goes by blocks of
// queries, so that no more than a block's rows of scores are there at once, and what a causal block does not see is not
// computed.
Attended attention(const HeadTensors& of, bool causal);
// grad: by the output. attended: what the forward returned. Returns the gradient by qkv, in its layout. Computes the
// probabilities of each block again: nothing of the size of context x context is kept.
at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& of, const Attended& attended, bool causal);

// Of softmax_rows, for a token; 0 where there are none. element_bytes: of what is attended.
double softmax_bytes(const AttentionHeads& heads, double element_bytes);

namespace portable {
at::Tensor attention(const HeadTensors& of, bool causal);
at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& of, bool causal);
}  // namespace portable

}  // namespace gyre
