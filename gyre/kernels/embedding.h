// Token embedding: rows of a table, and their gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace gyre {

// table: (vocabulary, width); tokens: (batch, context) int64. Returns (batch, context, width).
at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens);
// table_gradient (vocabulary, width) += grad at the tokens' rows, in the order of the tokens.
void embed_backward(const at::Tensor& grad, const at::Tensor& tokens, at::Tensor& table_gradient);

}  // namespace gyre
