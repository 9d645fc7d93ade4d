// Multi-head attention over a fused projection (Vaswani et al., 2017, section 3.2). Several query heads may share one
// key-value head (grouped queries; Ainslie et al., 2023).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gyre {

struct AttentionHeads {
  int64_t query = 1, key_value = 1;  // key_value divides query
  bool operator==(const AttentionHeads&) const = default;
};

// Queries, keys and values of every head. May be views, as split_heads returns them.
struct HeadTensors {
  at::Tensor query;       // (batch, query heads, context, size)
  at::Tensor key, value;  // (batch, key-value heads, context, size)
};

// (batch, context, heads * size) -> (batch, heads, context, size), a view.
at::Tensor heads_of(const at::Tensor& x, int64_t heads);
// qkv: (batch, context, (query + 2 key_value) * size): the queries of all heads, then all keys, then all values.
// Returns views, so writing to them changes qkv.
HeadTensors split_heads(const at::Tensor& qkv, const AttentionHeads& heads);

struct Attended {
  at::Tensor output;  // (batch, context, query heads * size)
  // (batch, query heads, context, 2), fp32: shift and factor of each row's softmax, saved for the backward. Undefined
  // if the backward computes the softmax itself.
  at::Tensor softmax_rows;
  // (batch, query heads, context, size): the output with its autograd graph, if libtorch's attention made it (sdpa.h).
  at::Tensor recorded;
};

// softmax(q k^T / sqrt(size)) v per head; causal: a position sees itself and those before it. Works on blocks of
// queries, so that only one block's scores are in memory at a time, and skips the keys that no query of a causal block
// sees.
Attended attention(const HeadTensors& inputs, bool causal);
// grad: gradient of the output. inputs: the tensors that the forward was given. attended: what it returned. Returns the
// gradient of qkv, in the layout that split_heads takes. Recomputes the probabilities of each block, so that nothing of
// size context x context is saved.
at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& inputs, const Attended& attended, bool causal);

// Bytes of softmax_rows per token on the CPU; 0 if attention leaves them undefined. element_bytes: of queries, keys and
// values.
double softmax_bytes(const AttentionHeads& heads, double element_bytes);
// Peak bytes, per sequence, of the tensors that attention_backward holds on the CPU besides its arguments and its
// result: mostly the scores of one block of queries. 0 in bf16 on CPUs that multiply it, where these are no tensors.
double attention_working_bytes(const AttentionHeads& heads, double head_size, double context, bool causal,
                               double element_bytes);

namespace portable {
at::Tensor attention(const HeadTensors& inputs, bool causal);
at::Tensor attention_backward(const at::Tensor& grad, const HeadTensors& inputs, bool causal);
}  // namespace portable

}  // namespace gyre
