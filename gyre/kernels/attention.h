// Multi-head attention over a fused projection (Vaswani et al., 2017, section 3.2).
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

struct AttentionResult {
  at::Tensor output;         // (batch, context, width)
  at::Tensor heads;          // (3, batch * heads, context, width / heads): q, k, v
  at::Tensor probabilities;  // (batch * heads, context, context); causal: zero above the diagonal
};
// qkv: (batch, context, 3 * width), q before k before v. softmax(q k^T / sqrt(width / heads)) v per head; causal: a
// position sees itself and those before it.
AttentionResult attention(const at::Tensor& qkv, int64_t heads, bool causal);
// grad: by the output. Returns the gradient by qkv.
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& heads, const at::Tensor& probabilities,
                              bool causal);

}  // namespace gyre
